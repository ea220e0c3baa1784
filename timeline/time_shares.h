// Which share of a training's time went into negotiation and communication.
#pragma once

#include <cstdint>
#include <optional>

#include "timeline/trace.h"

namespace hvdlite::timeline {

// Event that DistributedOptimizer records while its step() or synchronize()
// waits for gradients, on the application's lane.
inline constexpr char kWaitForGradients[] = "WAIT_FOR_GRADIENTS";

// Shares, 0 to 1, of the time from a rank's first event to its last; means over
// ranks.
struct TimeShares {
  // A tensor is in negotiation (its NEGOTIATE_* event), and no batch runs: it
  // waits for a slower rank, or until there is enough for a batch.
  double negotiating = 0;
  // A batch runs (*_BATCH on the batch lane).
  double communicating = 0;
  // The application waits for gradients: what computation did not hide of the
  // two above. nullopt: no rank has recorded kWaitForGradients.
  std::optional<double> exposed;
  int64_t ranks = 0;
};

// nullopt if `trace` is none of hvdlite's, or nothing in it took time.
std::optional<TimeShares> SharesOf(const Trace& trace);

}  // namespace hvdlite::timeline
