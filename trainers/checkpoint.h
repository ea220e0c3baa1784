// What a training's checkpoint holds, and the steps that a run of a training
// takes.
#pragma once

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
class OutputArchive;
}  // namespace torch::serialize

namespace hvdlite::trainers {

// Where a training stands.
struct Progress {
  int64_t epoch = 0;            // epochs done
  int64_t step = 0;             // steps done of the epoch after these
  int64_t steps_per_epoch = 0;  // of the training that saved it
};

// Writes model, optimizer and progress into `archive`. `model_name` is what
// ReadState compares.
void WriteState(torch::serialize::OutputArchive& archive,
                const std::string& model_name, const torch::nn::Module& model,
                const torch::optim::Optimizer& optimizer,
                const Progress& progress);

// Reads what WriteState wrote into `model` and `optimizer`, whose options
// (learning rate, momentum) stay as they are. The parameters stay the same
// tensors but take the saved memory layout. Throws std::runtime_error if
// `archive` holds another model, LibTorch's errors if anything else.
Progress ReadState(torch::serialize::InputArchive& archive,
                   const std::string& model_name, torch::nn::Module& model,
                   torch::optim::Optimizer& optimizer);

// Steps are counted from 0 over all epochs. The run takes those from `first` on
// that are below `last`; there are none if `first` is not.
struct StepRange {
  int64_t first = 0;
  int64_t last = 0;
  int64_t per_epoch = 1;

  int64_t EpochOf(int64_t step) const { return step / per_epoch; }
  int64_t InEpoch(int64_t step) const { return step % per_epoch; }

  // The first step after `step` that is of another epoch or not of this run.
  int64_t EndOfEpoch(int64_t step) const {
    return std::min((EpochOf(step) + 1) * per_epoch, last);
  }

  // Whether it is time for what happens after every so many epochs, 0: never,
  // and at the end of the run. `done` steps make whole epochs or the run.
  bool IsDue(int64_t every_epochs, int64_t done) const {
    return every_epochs > 0 &&
           (done == last || EpochOf(done) % every_epochs == 0);
  }

  Progress After(int64_t done) const {
    return {.epoch = EpochOf(done),
            .step = InEpoch(done),
            .steps_per_epoch = per_epoch};
  }
};

// Those that `run` asks for and that are not `done`.
inline StepRange StepsToTake(const RunFlags& run, const Progress& done,
                             int64_t steps_per_epoch) {
  const int64_t all = run.epochs * steps_per_epoch;
  return {.first = done.epoch * steps_per_epoch + done.step,
          .last = run.max_steps > 0 ? std::min(run.max_steps, all) : all,
          .per_epoch = steps_per_epoch};
}

}  // namespace hvdlite::trainers
