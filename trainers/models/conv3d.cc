#include "trainers/models/conv3d.h"

namespace hvdlite::trainers {
namespace {

namespace nn = torch::nn;

// Channels of the five convolutions, in multiples of the first's.
constexpr int64_t kWidths[] = {1, 2, 4, 4, 4};

// 16 frames of 112x112 become one of 4x4: the first pooling keeps the frames,
// and the last rounds 7/2 up.
constexpr int64_t kFeatureArea = 4 * 4;

nn::Sequential MakeFeatures(int64_t width) {
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

Conv3dNetImpl::Conv3dNetImpl(const Conv3dNetOptions& options)
    : features_(register_module("features", MakeFeatures(options.width))),
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

}  // namespace hvdlite::trainers
