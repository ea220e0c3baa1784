// The steps that a run of a training takes.
#pragma once

#include <algorithm>
#include <cstdint>

#include "trainers/checkpoint.h"
#include "trainers/run_flags.h"

namespace hvdlite::trainers {

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
