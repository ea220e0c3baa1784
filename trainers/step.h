// Parts of a training step: learning rate, forward passes in bfloat16, the loss
// of sequences, and losses that are no number any more.
#pragma once

#include <c10/core/ScalarType.h>
#include <torch/types.h>

#include <cstdint>
#include <set>
#include <stdexcept>
#include <string>
#include <vector>

namespace hvdlite::trainers {

// Linear scaling with gradual warm-up, then steps: Goyal et al., "Accurate,
// Large Minibatch SGD" (2017), sections 2.1 and 2.2.
struct LearningRateSchedule {
  double base = 0.0125;  // for one rank
  double scale = 1;      // for all of them: their number, say
  double warmup_epochs = 0;
  std::vector<double> milestones = {};  // epochs, ascending
  double gamma = 0.1;
  // Where the scale was another one before: from which, when, and over how many
  // epochs it changes.
  double scale_before = 1;
  double rescaled_at = 0;
  double rescaling_epochs = 0;

  // After so many epochs: rises linearly from base at 0 to base * scale after
  // warmup_epochs; multiplied by gamma for every milestone reached.
  double At(double epoch) const;
};

// What the learning rate of one rank is multiplied by: "linear": the number of
// ranks, "sqrt": its square root, "none": 1.
double LearningRateScale(const std::string& scaling, int world_size);

// Rises for warmup_steps, then falls with the square root of the step: Vaswani
// et al., "Attention Is All You Need" (2017), section 5.3.
struct InverseSquareRootSchedule {
  double factor = 1;
  int64_t d_model = 512;
  int64_t warmup_steps = 4000;

  // For the step-th step of the training, counted from 0, with s = step + 1:
  // factor * d_model^-0.5 * min(s^-0.5, s * warmup_steps^-1.5).
  double At(int64_t step) const;
};

// While it lives, the operators of this thread that profit, such as
// convolutions and matrix products, compute in bfloat16, from copies of
// float32 weights; other operators take the type of their inputs. Does nothing
// if `enabled` is false. The backward pass belongs outside: it uses the types
// of the forward pass by itself, and gradients are float32 as the weights are.
class Bfloat16Autocast {
 public:
  explicit Bfloat16Autocast(bool enabled);
  ~Bfloat16Autocast();  // restores what was; the outermost drops the copies

  Bfloat16Autocast(const Bfloat16Autocast&) = delete;
  Bfloat16Autocast& operator=(const Bfloat16Autocast&) = delete;

 private:
  const bool enabled_;
  bool was_enabled_ = false;
  at::ScalarType previous_type_ = at::kFloat;
};

// Of --bf16 on a processor of these flags (support::CpuFlags) without
// instructions for it: what is missing and what to do; else empty.
std::string SlowBfloat16Warning(const std::set<std::string>& cpu_flags);

// How well a model predicts the tokens of sequences: sums over the tokens that
// count.
struct SequenceLoss {
  torch::Tensor sum;    // cross entropy, in nats; differentiable
  int64_t correct = 0;  // tokens for which the most likely one is right
  int64_t tokens = 0;
};

// `logits` [N, T, vocabulary], `expected` [N, T] int64; tokens that are
// `ignored` do not count. `smoothing` is the share of probability that the
// wrong tokens get, in equal parts (Szegedy et al., "Rethinking the Inception
// Architecture for Computer Vision", CVPR 2016, section 7).
SequenceLoss ComputeSequenceLoss(const torch::Tensor& logits,
                                 const torch::Tensor& expected, int64_t ignored,
                                 double smoothing);

// What all ranks throw together.
class SharedError : public std::runtime_error {
 public:
  explicit SharedError(const std::string& message, int exit_code = 1)
      : std::runtime_error(message), exit_code_(exit_code) {}
  int exit_code() const { return exit_code_; }

 private:
  int exit_code_;
};

// Throws SharedError if `loss`, which is the same on all ranks, is infinite
// or not a number. `what` completes "the ... is not finite".
void RequireFinite(double loss, const std::string& what);

}  // namespace hvdlite::trainers
