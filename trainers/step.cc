#include "trainers/step.h"

#include <ATen/autocast_mode.h>
#include <torch/nn/functional/loss.h>
#include <torch/version.h>

#include <algorithm>
#include <cmath>

#include "support/processor.h"

namespace hvdlite::trainers {
namespace {

#if TORCH_VERSION_MAJOR > 2 || \
    (TORCH_VERSION_MAJOR == 2 && TORCH_VERSION_MINOR >= 4)
// Since version 2.4 autocast takes the device as an argument. Returns whether
// it is on.
bool CpuAutocast() { return at::autocast::is_autocast_enabled(at::kCPU); }
// Turns it on or off.
void SetCpuAutocast(bool on) {
  at::autocast::set_autocast_enabled(at::kCPU, on);
}
// Returns the type that it computes in.
at::ScalarType CpuAutocastType() {
  return at::autocast::get_autocast_dtype(at::kCPU);
}
// Sets the type that it computes in.
void SetCpuAutocastType(at::ScalarType type) {
  at::autocast::set_autocast_dtype(at::kCPU, type);
}
#else
// The same four functions with the names of older versions.
bool CpuAutocast() { return at::autocast::is_cpu_enabled(); }
void SetCpuAutocast(bool on) { at::autocast::set_cpu_enabled(on); }
at::ScalarType CpuAutocastType() {
  return at::autocast::get_autocast_cpu_dtype();
}
void SetCpuAutocastType(at::ScalarType type) {
  at::autocast::set_autocast_cpu_dtype(type);
}
#endif

// The expected token has the probability 1 - smoothing, every other token
// smoothing / (vocabulary - 1).
torch::Tensor SmoothedSum(const torch::Tensor& logits,
                          const torch::Tensor& expected, int64_t ignored,
                          double smoothing) {
  const torch::Tensor counts = expected.ne(ignored);
  const torch::Tensor log_probabilities = logits.log_softmax(1);
  const torch::Tensor of_expected =
      log_probabilities
          .gather(1, expected.masked_fill(counts.logical_not(), 0).unsqueeze(1))
          .squeeze(1);
  const torch::Tensor of_others = log_probabilities.sum(1) - of_expected;
  const double share = smoothing / static_cast<double>(logits.size(1) - 1);
  return -((1 - smoothing) * of_expected + share * of_others)
              .masked_select(counts)
              .sum();
}

}  // namespace

double LearningRateSchedule::At(double epoch) const {
  double factor = scale;
  if (epoch - rescaled_at < rescaling_epochs) {
    factor = scale_before +
             (scale - scale_before) * (epoch - rescaled_at) / rescaling_epochs;
  }
  if (epoch < warmup_epochs) {
    factor = 1.0 + (factor - 1) * epoch / warmup_epochs;
  }
  for (const double milestone : milestones) {
    if (epoch >= milestone) factor *= gamma;
  }
  return base * factor;
}

double LearningRateScale(const std::string& scaling, int world_size) {
  if (scaling == "sqrt") return std::sqrt(world_size);
  return scaling == "none" ? 1 : world_size;
}

double InverseSquareRootSchedule::At(int64_t step) const {
  const double s = static_cast<double>(step) + 1;
  const auto warmup = static_cast<double>(warmup_steps);
  return factor / std::sqrt(static_cast<double>(d_model)) *
         std::min(1 / std::sqrt(s), s * std::pow(warmup, -1.5));
}

Bfloat16Autocast::Bfloat16Autocast(bool enabled) : enabled_(enabled) {
  if (!enabled_) return;
  was_enabled_ = CpuAutocast();
  previous_type_ = CpuAutocastType();
  SetCpuAutocast(true);
  SetCpuAutocastType(at::kBFloat16);
  at::autocast::increment_nesting();
}

Bfloat16Autocast::~Bfloat16Autocast() {
  if (!enabled_) return;
  if (at::autocast::decrement_nesting() == 0) at::autocast::clear_cache();
  SetCpuAutocastType(previous_type_);
  SetCpuAutocast(was_enabled_);
}

std::string SlowBfloat16Warning(const std::set<std::string>& cpu_flags) {
  const std::string missing = support::MissingBfloat16Instructions(cpu_flags);
  if (missing.empty()) return "";
  return "--bf16: this processor has no instructions for bfloat16 (" + missing +
         ") and emulates them, many times slower than float32 (13 times in a "
         "measurement). Remedy: remove --bf16, or train on a processor that "
         "has them";
}

SequenceLoss ComputeSequenceLoss(const torch::Tensor& logits,
                                 const torch::Tensor& expected, int64_t ignored,
                                 double smoothing) {
  namespace F = torch::nn::functional;
  const torch::Tensor flat_logits = logits.reshape({-1, logits.size(2)});
  const torch::Tensor flat_expected = expected.reshape({-1});
  SequenceLoss loss;
  loss.sum = smoothing > 0
                 ? SmoothedSum(flat_logits, flat_expected, ignored, smoothing)
                 : F::cross_entropy(flat_logits, flat_expected,
                                    F::CrossEntropyFuncOptions()
                                        .reduction(torch::kSum)
                                        .ignore_index(ignored));
  const torch::NoGradGuard no_grad;
  const torch::Tensor counts = flat_expected.ne(ignored);
  loss.correct = flat_logits.argmax(1)
                     .eq(flat_expected)
                     .logical_and(counts)
                     .sum()
                     .item<int64_t>();
  loss.tokens = counts.sum().item<int64_t>();
  return loss;
}

void RequireFinite(double loss, const std::string& what) {
  if (std::isfinite(loss)) return;
  throw SharedError("the " + what + " is not finite (" + std::to_string(loss) +
                    "): the training diverged. Remedy: continue from a "
                    "checkpoint, or start from scratch, with a smaller "
                    "learning rate or a longer warm-up, and look for values "
                    "in the data that are not finite");
}

}  // namespace hvdlite::trainers
