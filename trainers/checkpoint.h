// The range of steps that a run takes, and checkpoints in the format of the
// first release.
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
// into `model`, `optimizer` and `sampler`. The options of `optimizer` stay as
// they are. The ranks of `sampler` take `samples_per_step` together. The
// parameters stay the same tensors but take the saved memory layout. Returns
// the number of steps done. Throws std::runtime_error if the file holds another
// model, or was made within an epoch of another length; throws LibTorch's
// errors if the file is no checkpoint.
int64_t ReadFirstRelease(torch::serialize::InputArchive& archive,
                         const std::string& model_name,
                         int64_t samples_per_step, torch::nn::Module& model,
                         torch::optim::Optimizer& optimizer,
                         DistributedSampler& sampler);

// The steps of a run, counted from 0 over all epochs and all starts of a
// training: `first` to `last` - 1, or none if `first` >= `last`. An epoch of
// this run has `per_epoch` steps. Earlier starts may have used other numbers of
// ranks and so had epochs of other lengths; `shift` corrects the step number
// for that.
struct StepRange {
  int64_t first = 0;
  int64_t last = 0;
  int64_t per_epoch = 1;
  int64_t shift = 0;

  int64_t EpochOf(int64_t step) const { return (step + shift) / per_epoch; }
  int64_t InEpoch(int64_t step) const { return (step + shift) % per_epoch; }

  // The end of the epoch of `step`, or of the run if that is earlier.
  int64_t EndOfEpoch(int64_t step) const {
    return std::min((EpochOf(step) + 1) * per_epoch - shift, last);
  }

  // True if an action of every `every_epochs` epochs (0: never) is due. It is
  // also due at the end of the run. `done` is the step at the end of an epoch
  // or of the run.
  bool IsDue(int64_t every_epochs, int64_t done) const {
    return every_epochs > 0 &&
           (done == last || EpochOf(done) % every_epochs == 0);
  }
};

// The steps that `run` asks for when `done` steps are done. `sampler` knows the
// rest of the epoch; the ranks take `samples_per_step` at most.
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
