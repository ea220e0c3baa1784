// Parts of a training step: the learning rate, forward passes in bfloat16, the
// loss of sequences, and the check for finite losses.
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
  double scale = 1;      // for all ranks, for example their number
  double warmup_epochs = 0;
  std::vector<double> milestones = {};  // epochs, ascending
  double gamma = 0.1;
  // A change of the scale: the scale before, when it changes, and over how many
  // epochs.
  double scale_before = 1;
  double rescaled_at = 0;
  double rescaling_epochs = 0;

  // The learning rate after so many epochs. It rises linearly from base to base
  // * scale during warmup_epochs, and is multiplied by gamma at every
  // milestone.
  double At(double epoch) const;
};

// The factor of the learning rate. "linear": the number of ranks; "sqrt": its
// square root; "none": 1.
double LearningRateScale(const std::string& scaling, int world_size);

// Rises during warmup_steps, then falls with the square root of the step:
// Vaswani et al., "Attention Is All You Need" (2017), section 5.3.
struct InverseSquareRootSchedule {
  double factor = 1;
  int64_t d_model = 512;
  int64_t warmup_steps = 4000;

  // The learning rate of the step-th step of the training, counted from 0, with
  // s = step + 1: factor * d_model^-0.5 * min(s^-0.5, s * warmup_steps^-1.5).
  double At(int64_t step) const;
};

// If `enabled`, operators of this thread that profit (convolutions, matrix
// products) compute in bfloat16 during its lifetime, with copies of float32
// weights. Other operators use the type of their inputs. Call backward()
// outside: it uses the types of the forward pass by itself, and gradients are
// float32 like the weights.
class Bfloat16Autocast {
 public:
  explicit Bfloat16Autocast(bool enabled);
  ~Bfloat16Autocast();  // restores the previous mode; the outermost one drops
                        // the copies

  Bfloat16Autocast(const Bfloat16Autocast&) = delete;
  Bfloat16Autocast& operator=(const Bfloat16Autocast&) = delete;

 private:
  const bool enabled_;
  bool was_enabled_ = false;
  at::ScalarType previous_type_ = at::kFloat;
};

// If a processor with these flags (support::CpuFlags) lacks instructions for
// --bf16, returns what is missing and what to do; else an empty string.
std::string SlowBfloat16Warning(const std::set<std::string>& cpu_flags);

// The quality of predicted tokens: sums over the tokens that count.
struct SequenceLoss {
  torch::Tensor sum;    // cross entropy, in nats; differentiable
  int64_t correct = 0;  // tokens whose most likely prediction is right
  int64_t tokens = 0;
};

// `logits` is [N, T, vocabulary], `expected` is [N, T] int64. Tokens that are
// `ignored` do not count. `smoothing` is the share of probability that the
// wrong tokens get in equal parts (Szegedy et al., "Rethinking the Inception
// Architecture for Computer Vision", CVPR 2016, section 7).
SequenceLoss ComputeSequenceLoss(const torch::Tensor& logits,
                                 const torch::Tensor& expected, int64_t ignored,
                                 double smoothing);

// An error that all ranks throw together.
class SharedError : public std::runtime_error {
 public:
  explicit SharedError(const std::string& message, int exit_code = 1)
      : std::runtime_error(message), exit_code_(exit_code) {}
  int exit_code() const { return exit_code_; }

 private:
  int exit_code_;
};

// Throws SharedError if `loss`, which is the same on all ranks, is infinite or
// NaN. `what` completes "the ... is not finite".
void RequireFinite(double loss, const std::string& what);

}  // namespace hvdlite::trainers
