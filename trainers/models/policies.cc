#include "trainers/models/policies.h"

#include <cmath>

namespace hvdlite::trainers {
namespace {

namespace nn = torch::nn;

constexpr int64_t kHidden = 512;

void InitialiseOrthogonal(nn::Module& model, double gain) {
  for (const auto& item : model.named_parameters()) {
    if (item.value().dim() > 1) {
      nn::init::orthogonal_(item.value(), gain);
    } else {
      nn::init::zeros_(item.value());
    }
  }
}

}  // namespace

CartPolePolicyImpl::CartPolePolicyImpl()
    : hidden_(register_module("hidden", nn::Linear(4, 128))),
      output_(register_module("output", nn::Linear(128, 2))) {}

torch::Tensor CartPolePolicyImpl::forward(const torch::Tensor& states) {
  return torch::log_softmax(output_(torch::relu(hidden_(states))), 1);
}

FramePolicyImpl::FramePolicyImpl()
    : features_(register_module(
          "features",
          nn::Sequential(
              nn::Conv2d(nn::Conv2dOptions(kFrameStack, 32, 8).stride(4)),
              nn::ReLU(), nn::Conv2d(nn::Conv2dOptions(32, 64, 4).stride(2)),
              nn::ReLU(), nn::Conv2d(nn::Conv2dOptions(64, 32, 3)), nn::ReLU(),
              nn::Flatten(), nn::Linear(32 * 7 * 7, kHidden), nn::ReLU()))),
      actor_(register_module("actor", nn::Linear(kHidden, kFrameActions))),
      critic_(register_module("critic", nn::Linear(kHidden, 1))) {
  InitialiseOrthogonal(*features_, std::sqrt(2.0));
  InitialiseOrthogonal(*actor_, 0.01);
  InitialiseOrthogonal(*critic_, 1.0);
}

PolicyOutput FramePolicyImpl::forward(const torch::Tensor& frames) {
  const torch::Tensor features =
      features_->forward(frames.to(torch::kFloat32).div(255));
  return {torch::log_softmax(actor_(features).to(torch::kFloat32), 1),
          critic_(features).to(torch::kFloat32).squeeze(1)};
}

}  // namespace hvdlite::trainers
