// The steps that a run of a training takes, and the checkpoints of the first
// release.
#pragma once

#include <hvdlite/sampler.h>

#include <algorithm>
#include <cstdint>
#include <string>

#include "trainers/run_flags.h"

namespace torch::nn {
class Module;
}
namespace torch::optim {
class Optimizer;
}
namespace torch::serialize {
class InputArchive;
}  // namespace torch::serialize

namespace hvdlite::trainers {

// Reads a checkpoint of the first release, which counted an epoch in steps,
// into `model`, `optimizer` (whose options stay as they are) and `sampler`,
// whose ranks take `samples_per_step`. The parameters stay the same tensors but
// take the saved memory layout. Returns the steps done. Throws
// std::runtime_error if it holds another model, or was made within an epoch
// with other steps; LibTorch's errors if anything else.
int64_t ReadFirstRelease(torch::serialize::InputArchive& archive,
                         const std::string& model_name,
                         int64_t samples_per_step, torch::nn::Module& model,
                         torch::optim::Optimizer& optimizer,
                         DistributedSampler& sampler);

// Steps are counted from 0 over all epochs and all starts of a training. The
// run takes those from `first` on that are below `last`; there are none if
// `first` is not. Its epochs have `per_epoch` steps; as those before it may
// have been of other worlds, with other steps, the step s of the training is s
// + `shift` in this counting.
struct StepRange {
  int64_t first = 0;
  int64_t last = 0;
  int64_t per_epoch = 1;
  int64_t shift = 0;

  int64_t EpochOf(int64_t step) const { return (step + shift) / per_epoch; }
  int64_t InEpoch(int64_t step) const { return (step + shift) % per_epoch; }

  // The first step after `step` that is of another epoch or not of this run.
  int64_t EndOfEpoch(int64_t step) const {
    return std::min((EpochOf(step) + 1) * per_epoch - shift, last);
  }

  // Whether it is time for what happens after every so many epochs, 0: never,
  // and at the end of the run. `done` steps make whole epochs or the run.
  bool IsDue(int64_t every_epochs, int64_t done) const {
    return every_epochs > 0 &&
           (done == last || EpochOf(done) % every_epochs == 0);
  }
};

// Those that `run` asks for after `done` steps, of which `sampler` tells what
// they have left, where ranks take `samples_per_step` at most.
inline StepRange StepsToTake(const RunFlags& run, int64_t done,
                             const DistributedSampler& sampler,
                             int64_t samples_per_step) {
  const auto steps_of = [&](int64_t samples) {
    return (samples + samples_per_step - 1) / samples_per_step;
  };
  const int64_t per_epoch = steps_of(sampler.dataset_size());
  const int64_t left = steps_of(sampler.dataset_size() - sampler.position());
  const int64_t shift = (sampler.epoch() + 1) * per_epoch - left - done;
  const int64_t all = run.epochs * per_epoch - shift;
  return {.first = done,
          .last = run.max_steps > 0 ? std::min(run.max_steps, all) : all,
          .per_epoch = per_epoch,
          .shift = shift};
}

}  // namespace hvdlite::trainers
