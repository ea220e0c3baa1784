// CostModel: what computation and collectives take. The one place for better
// models of either.
#pragma once

#include <cmath>
#include <cstdint>

namespace hvdlite::scale_sim {

// All costs are flat at present: the same for every rank and batch.
struct CostModel {
  double forward_ms = 50;
  double backward_ms = 100;
  double batch_us = 0;

  // From a step's beginning until a gradient is ready that backward produces
  // after `fraction` of its time.
  int64_t ReadyNanos(double fraction) const {
    return std::llround((forward_ms + fraction * backward_ms) * 1e6);
  }

  // A batch of `bytes` on `ranks` ranks, from the time at which the last of
  // them has begun.
  int64_t BatchNanos(int64_t /*bytes*/, int /*ranks*/) const {
    return std::llround(batch_us * 1e3);
  }
};

}  // namespace hvdlite::scale_sim
