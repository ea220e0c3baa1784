// A step of training with Horovod: computed, not simulated message by message.
#pragma once

#include <cstdint>

#include "tools/scale_sim/training_model.h"

namespace hvdlite::scale_sim {

// Horovod's background thread: every cycle the ranks tell rank 0 what is ready,
// which answers with what all have; that is packed into buffers of up to the
// fusion threshold, which are reduced by blocking calls, one after the other.
struct HorovodOptions {
  double cycle_ms = 1;                       // HOROVOD_CYCLE_TIME
  int64_t fusion_bytes = int64_t{64} << 20;  // HOROVOD_FUSION_THRESHOLD
  // The speed at which computation goes on during an allreduce, as a part of
  // its speed at other times in the step.
  double overlap = 0;
};

// Where the time of a step went; seconds.
struct StepTime {
  double step = 0;           // from its beginning until all is reduced
  double computation = 0;    // of the slowest rank, starved as it is
  double communication = 0;  // all allreduces
  double exposed = 0;        // step - computation
  int batches = 0;
};

// The step of `ranks` ranks with `images` images each. The slowest rank
// decides: its computation takes 1 + jitter * ExpectedExponentialMaximum(ranks)
// times as long as one without jitter.
StepTime HorovodStep(const TrainingModel& model, const HorovodOptions& options,
                     double images, int ranks);

}  // namespace hvdlite::scale_sim
