#include "trainers/models/vgg16.h"

namespace hvdlite::trainers {
namespace {

namespace nn = torch::nn;

// Convolutions of one stage; max-pooling halves the resolution after each.
struct Stage {
  int64_t convolutions;
  int64_t channels;
};
constexpr Stage kStages[] = {{2, 64}, {2, 128}, {3, 256}, {3, 512}, {3, 512}};

nn::Sequential MakeFeatures() {
  nn::Sequential features;
  int64_t channels = 3;
  for (const Stage& stage : kStages) {
    for (int64_t i = 0; i < stage.convolutions; ++i) {
      features->push_back(nn::Conv2d(
          nn::Conv2dOptions(channels, stage.channels, 3).padding(1)));
      features->push_back(nn::ReLU());
      channels = stage.channels;
    }
    features->push_back(nn::MaxPool2d(2));
  }
  return features;
}

void Initialise(nn::Module& model) {
  for (const auto& module : model.modules(/*include_self=*/false)) {
    if (auto* convolution = module->as<nn::Conv2d>()) {
      nn::init::kaiming_normal_(convolution->weight, 0.0, torch::kFanOut,
                                torch::kReLU);
      nn::init::zeros_(convolution->bias);
    } else if (auto* linear = module->as<nn::Linear>()) {
      nn::init::normal_(linear->weight, 0.0, 0.01);
      nn::init::zeros_(linear->bias);
    }
  }
}

}  // namespace

Vgg16Impl::Vgg16Impl(const Vgg16Options& options)
    : features_(register_module("features", MakeFeatures())),
      classifier_(register_module(
          "classifier",
          nn::Sequential(nn::Linear(512 * 7 * 7, options.hidden), nn::ReLU(),
                         nn::Dropout(options.dropout),
                         nn::Linear(options.hidden, options.hidden), nn::ReLU(),
                         nn::Dropout(options.dropout),
                         nn::Linear(options.hidden, options.classes)))) {
  Initialise(*this);
}

torch::Tensor Vgg16Impl::forward(const torch::Tensor& images) {
  const torch::Tensor features =
      torch::adaptive_avg_pool2d(features_->forward(images), {7, 7});
  return classifier_->forward(features.flatten(1));
}

}  // namespace hvdlite::trainers
