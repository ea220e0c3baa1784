// The learning rate of every step.
#pragma once

#include <cstdint>
#include <vector>

namespace hvdlite::trainers {

// Linear scaling with gradual warm-up, then steps: Goyal et al., "Accurate,
// Large Minibatch SGD" (2017), sections 2.1 and 2.2.
struct LearningRateSchedule {
  double base = 0.0125;  // for one rank
  int world_size = 1;
  int64_t steps_per_epoch = 1;
  double warmup_epochs = 0;
  std::vector<double> milestones = {};  // epochs, ascending
  double gamma = 0.1;

  // For the step-th step of the training, counted from 0: rises linearly from
  // base at step 0 to base * world_size after warmup_epochs; multiplied by
  // gamma for every milestone reached.
  double At(int64_t step) const;
};

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

}  // namespace hvdlite::trainers
