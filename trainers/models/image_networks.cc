#include "trainers/models/image_networks.h"

namespace hvdlite::trainers {
namespace {

namespace nn = torch::nn;

nn::Conv2d Convolution(int64_t in, int64_t out, int64_t kernel, int64_t stride,
                       int64_t padding) {
  return nn::Conv2d(
      nn::Conv2dOptions(in, out, kernel).stride(stride).padding(padding));
}

nn::MaxPool2d Pooling() {
  return nn::MaxPool2d(nn::MaxPool2dOptions(3).stride(2));
}

// Convolutions per stage; max-pooling halves the resolution after each stage.
struct VggStage {
  int64_t convolutions;
  int64_t channels;
};
constexpr VggStage kVggStages[] = {
    {2, 64}, {2, 128}, {3, 256}, {3, 512}, {3, 512}};

nn::Sequential MakeVgg16Features() {
  nn::Sequential features;
  int64_t channels = 3;
  for (const VggStage& stage : kVggStages) {
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

void InitialiseForRelu(nn::Module& model) {
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

// Channels of the five convolutions, as multiples of the first one's.
constexpr int64_t kWidths[] = {1, 2, 4, 4, 4};

// 16 frames of 112x112 become one of 4x4: the first pooling keeps the number of
// frames, and the last one rounds 7/2 up.
constexpr int64_t kFeatureArea = 4 * 4;

nn::Sequential MakeConv3dFeatures(int64_t width) {
  nn::Sequential features;
  int64_t channels = 3;
  for (const int64_t multiple : kWidths) {
    const int64_t frames = features->is_empty() ? 1 : 2;  // pooled into one
    features->push_back(nn::Conv3d(
        nn::Conv3dOptions(channels, multiple * width, 3).padding(1)));
    features->push_back(nn::ReLU());
    features->push_back(
        nn::MaxPool3d(nn::MaxPool3dOptions({frames, 2, 2}).ceil_mode(true)));
    channels = multiple * width;
  }
  return features;
}

}  // namespace

AlexNetImpl::AlexNetImpl(const AlexNetOptions& options)
    : features_(register_module(
          "features",
          nn::Sequential(Convolution(3, 64, 11, 4, 2), nn::ReLU(), Pooling(),
                         Convolution(64, 192, 5, 1, 2), nn::ReLU(), Pooling(),
                         Convolution(192, 384, 3, 1, 1), nn::ReLU(),
                         Convolution(384, 256, 3, 1, 1), nn::ReLU(),
                         Convolution(256, 256, 3, 1, 1), nn::ReLU(),
                         Pooling()))),
      classifier_(register_module(
          "classifier",
          nn::Sequential(nn::Dropout(options.dropout),
                         nn::Linear(256 * 6 * 6, options.hidden), nn::ReLU(),
                         nn::Dropout(options.dropout),
                         nn::Linear(options.hidden, options.hidden), nn::ReLU(),
                         nn::Linear(options.hidden, options.classes)))) {}

torch::Tensor AlexNetImpl::forward(const torch::Tensor& images) {
  const torch::Tensor features =
      torch::adaptive_avg_pool2d(features_->forward(images), {6, 6});
  return classifier_->forward(features.flatten(1));
}

Vgg16Impl::Vgg16Impl(const Vgg16Options& options)
    : features_(register_module("features", MakeVgg16Features())),
      classifier_(register_module(
          "classifier",
          nn::Sequential(nn::Linear(512 * 7 * 7, options.hidden), nn::ReLU(),
                         nn::Dropout(options.dropout),
                         nn::Linear(options.hidden, options.hidden), nn::ReLU(),
                         nn::Dropout(options.dropout),
                         nn::Linear(options.hidden, options.classes)))) {
  InitialiseForRelu(*this);
}

torch::Tensor Vgg16Impl::forward(const torch::Tensor& images) {
  const torch::Tensor features =
      torch::adaptive_avg_pool2d(features_->forward(images), {7, 7});
  return classifier_->forward(features.flatten(1));
}

Conv3dNetImpl::Conv3dNetImpl(const Conv3dNetOptions& options)
    : features_(register_module("features", MakeConv3dFeatures(options.width))),
      classifier_(register_module(
          "classifier",
          nn::Sequential(
              nn::Linear(4 * options.width * kFeatureArea, options.hidden),
              nn::ReLU(), nn::Dropout(options.dropout),
              nn::Linear(options.hidden, options.hidden), nn::ReLU(),
              nn::Dropout(options.dropout),
              nn::Linear(options.hidden, options.classes)))) {}

torch::Tensor Conv3dNetImpl::forward(const torch::Tensor& clips) {
  return classifier_->forward(features_->forward(clips).flatten(1));
}

DigitNetImpl::DigitNetImpl()
    : conv1_(register_module("conv1", nn::Conv2d(1, 10, 5))),
      conv2_(register_module("conv2", nn::Conv2d(10, 20, 5))),
      conv2_dropout_(register_module(
          "conv2_drop", SampleDropout(0.5, SampleDropoutImpl::Unit::kChannel))),
      fc1_(register_module("fc1", nn::Linear(320, 50))),
      fc1_dropout_(register_module("fc1_drop", SampleDropout(0.5))),
      fc2_(register_module("fc2", nn::Linear(50, 10))) {}

torch::Tensor DigitNetImpl::forward(const torch::Tensor& images) {
  torch::Tensor features = torch::relu(torch::max_pool2d(conv1_(images), 2));
  features =
      torch::relu(torch::max_pool2d(conv2_dropout_(conv2_(features)), 2));
  features = fc1_dropout_(torch::relu(fc1_(features.flatten(1))));
  return torch::log_softmax(fc2_(features), 1);
}

}  // namespace hvdlite::trainers
