#include <ATen/Functions.h>
#include <ATen/core/grad_mode.h>
#include <hvdlite/sync_batch_norm.h>
#include <torch/nn/init.h>

#include <ostream>
#include <string>
#include <utility>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "negotiation/world/world_state.h"
#include "torch_plugin/ops/process_set_state.h"
#include "torch_plugin/state/batch_statistics.h"
#include "torch_plugin/state/synchronized_normalization.h"
#include "torch_plugin/throw_status.h"

namespace hvdlite {
namespace {

// Why `input` is not [N, C, ...] of a supported dtype; empty: it is.
std::string Refusal(const at::Tensor& input, int64_t num_features) {
  if (!input.defined()) return "the input is undefined";
  const at::ScalarType type = input.scalar_type();
  if (type != at::kFloat && type != at::kDouble && type != at::kHalf &&
      type != at::kBFloat16) {
    return absl::StrCat("dtype ", c10::toString(type),
                        " is not supported; use float32, float64, float16 or "
                        "bfloat16");
  }
  if (input.layout() != at::kStrided || !input.device().is_cpu()) {
    return "only dense CPU tensors are supported";
  }
  if (input.dim() < 2 || input.size(1) != num_features) {
    return absl::StrCat("the input's shape is [",
                        absl::StrJoin(input.sizes(), ", "),
                        "], but must be [N, ", num_features,
                        ", ...] for num_features ", num_features);
  }
  return "";
}

}  // namespace

SyncBatchNormImpl::SyncBatchNormImpl(int64_t num_features)
    : SyncBatchNormImpl(torch::nn::BatchNormOptions(num_features)) {}

SyncBatchNormImpl::SyncBatchNormImpl(
    const torch::nn::BatchNormOptions& batch_norm_options,
    ProcessSet process_set)
    : options(batch_norm_options), process_set_(std::move(process_set)) {
  SyncBatchNormImpl::reset();
}

void SyncBatchNormImpl::reset() {
  const int64_t features = options.num_features();
  if (options.affine()) {
    weight = register_parameter("weight", at::empty({features}));
    bias = register_parameter("bias", at::empty({features}));
  } else {
    weight = register_parameter("weight", {}, /*requires_grad=*/false);
    bias = register_parameter("bias", {}, /*requires_grad=*/false);
  }
  if (options.track_running_stats()) {
    running_mean = register_buffer("running_mean", at::zeros({features}));
    running_var = register_buffer("running_var", at::ones({features}));
    num_batches_tracked =
        register_buffer("num_batches_tracked", at::zeros({}, at::kLong));
  } else {
    running_mean = register_buffer("running_mean", {});
    running_var = register_buffer("running_var", {});
    num_batches_tracked = register_buffer("num_batches_tracked", {});
  }
  reset_parameters();
}

void SyncBatchNormImpl::reset_running_stats() {
  if (!options.track_running_stats()) return;
  running_mean.zero_();
  running_var.fill_(1);
  num_batches_tracked.zero_();
}

void SyncBatchNormImpl::reset_parameters() {
  reset_running_stats();
  if (!options.affine()) return;
  torch::nn::init::ones_(weight);
  torch::nn::init::zeros_(bias);
}

at::Tensor SyncBatchNormImpl::forward(const at::Tensor& input) {
  const std::string refusal = Refusal(input, options.num_features());
  if (!is_training() && options.track_running_stats()) {
    if (!refusal.empty()) {
      internal::ThrowError(absl::StrCat("SyncBatchNorm: ", refusal));
    }
    return internal::Normalize(input, running_mean, running_var, weight, bias,
                               options.eps());
  }
  const std::shared_ptr<internal::World> world = internal::CurrentWorld();
  const std::string name = world->NextName(
      "sync_batch_norm",
      internal::MembersOf(*world, process_set_, "SyncBatchNorm").id);
  const internal::BatchStatistics statistics =
      internal::GatherStatistics(input, refusal, name, process_set_);
  if (is_training() && options.track_running_stats()) {
    const at::NoGradGuard no_grad;
    num_batches_tracked += 1;
    const double factor = options.momentum().value_or(
        1.0 / static_cast<double>(num_batches_tracked.item<int64_t>()));
    if (statistics.count > 0) {
      running_mean.mul_(1 - factor)
          .add_(statistics.mean.to(running_mean.scalar_type()), factor);
      running_var.mul_(1 - factor)
          .add_(statistics.UnbiasedVariance().to(running_var.scalar_type()),
                factor);
    }
  }
  return internal::NormalizeSynchronized(input, weight, bias, statistics,
                                         options.eps(), name, process_set_);
}

void SyncBatchNormImpl::pretty_print(std::ostream& stream) const {
  stream << std::boolalpha << "hvdlite::SyncBatchNorm("
         << options.num_features() << ", eps=" << options.eps()
         << ", momentum=";
  if (options.momentum().has_value()) {
    stream << *options.momentum();
  } else {
    stream << "None";
  }
  stream << ", affine=" << options.affine()
         << ", track_running_stats=" << options.track_running_stats() << ")";
}

}  // namespace hvdlite
