#include "trainers/models/alexnet.h"

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

}  // namespace hvdlite::trainers
