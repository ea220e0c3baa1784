#include "trainers/models/dropout.h"

#include <torch/nn/modules/dropout.h>
#include <torch/types.h>

#include <algorithm>
#include <cmath>
#include <cstdint>
#include <limits>
#include <stdexcept>
#include <string>

namespace hvdlite::trainers {
namespace {

constexpr int kParts = 1 << 16;  // what a random number of 16 bits can tell
constexpr int64_t kNumbersPerDraw = 4;

// Uniform in -kParts / 2 .. kParts / 2 - 1.
torch::Tensor RandomLike(const torch::Tensor& input) {
  const int64_t draws = (input.numel() + kNumbersPerDraw - 1) / kNumbersPerDraw;
  return torch::empty({draws}, torch::kInt64)
      .random_(std::numeric_limits<int64_t>::lowest(), c10::nullopt,
               c10::nullopt)
      .view(torch::kInt16)
      .narrow(0, 0, input.numel())
      .view(input.sizes());
}

}  // namespace

PackedDropoutImpl::PackedDropoutImpl(double share) { set_share(share); }

void PackedDropoutImpl::set_share(double share) {
  if (!(share >= 0 && share < 1)) {
    throw std::invalid_argument(
        "the share to drop out must be at least 0 and "
        "below 1, but is " +
        std::to_string(share));
  }
  dropped_ =
      std::min(static_cast<int>(std::lround(share * kParts)), kParts - 1);
}

torch::Tensor PackedDropoutImpl::forward(const torch::Tensor& input) {
  if (!is_training() || dropped_ == 0) return input;
  const double scale = static_cast<double>(kParts) / (kParts - dropped_);
  return input * RandomLike(input)
                     .ge(dropped_ - kParts / 2)
                     .to(input.scalar_type())
                     .mul_(scale);
}

void SetDropout(torch::nn::Module& model, double share) {
  for (const auto& module : model.modules()) {
    if (auto* packed = module->as<PackedDropoutImpl>()) {
      packed->set_share(share);
    } else if (auto* dropout = module->as<torch::nn::DropoutImpl>()) {
      dropout->options.p(share);
    } else if (auto* dropout2d = module->as<torch::nn::Dropout2dImpl>()) {
      dropout2d->options.p(share);
    }
  }
}

}  // namespace hvdlite::trainers
