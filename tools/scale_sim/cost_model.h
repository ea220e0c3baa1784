// CostModel: what computation and collectives take in a simulation.
#pragma once

#include <cmath>
#include <cstdint>
#include <optional>

#include "tools/scale_sim/allreduce_cost.h"

namespace hvdlite::scale_sim {

// The same for every rank.
struct CostModel {
  double forward_ms = 50;
  double backward_ms = 100;
  double batch_us = 0;
  // On top of batch_us, for the bytes of a batch.
  std::optional<AllreduceModel> allreduce;
  // The size of the world that the allreduce is charged for; 0: all ranks that
  // are simulated.
  int allreduce_ranks = 0;

  // From a step's beginning until a gradient is ready that backward produces
  // after `fraction` of its time.
  int64_t ReadyNanos(double fraction) const {
    return std::llround((forward_ms + fraction * backward_ms) * 1e6);
  }

  // A batch of `bytes` on `ranks` ranks, from the time at which the last of
  // them has begun.
  int64_t BatchNanos(int64_t bytes, int ranks) const {
    double us = batch_us;
    if (allreduce.has_value()) {
      us +=
          1e6 * AllreduceSeconds(*allreduce, bytes,
                                 allreduce_ranks > 0 ? allreduce_ranks : ranks);
    }
    return std::llround(us * 1e3);
  }
};

}  // namespace hvdlite::scale_sim
