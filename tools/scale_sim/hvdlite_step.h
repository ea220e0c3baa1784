// A step of training with hvdlite: simulated, with its Negotiator.
#pragma once

#include "absl/status/statusor.h"
#include "tools/scale_sim/horovod_step.h"
#include "tools/scale_sim/training_model.h"

namespace hvdlite::scale_sim {

struct HvdliteOptions {
  int tree_arity = 8;
  int64_t fusion_threshold_bytes = int64_t{64} << 20;
  int64_t min_batch_bytes = int64_t{4} << 20;
  // Computation goes on at its speed while a batch runs. Otherwise no batch
  // begins before step() waits.
  bool overlap = true;
  // Steps that are averaged; one is enough without jitter.
  int steps = 1;
  // Of a larger world so many ranks are simulated. The allreduce is charged for
  // all of it; what is missed are levels of the negotiation's tree and the
  // stragglers among the others.
  int max_simulated_ranks = 1024;
  uint64_t seed = 1;
};

// The step of `ranks` ranks with `images` images each: the mean of
// `options.steps`. Errors: those of the protocol.
absl::StatusOr<StepTime> HvdliteStep(const TrainingModel& model,
                                     const HvdliteOptions& options,
                                     double images, int ranks);

}  // namespace hvdlite::scale_sim
