// A star, where every rank reports to the root itself: computed, not simulated,
// since a Negotiator has at most 62 children.
#pragma once

#include <cstdint>

#include "tools/scale_sim/network.h"

namespace hvdlite::scale_sim {

struct StarLoad {
  double latency_us = 0;      // of the rank that starts last
  int64_t root_received = 0;  // messages per decision
  int64_t root_sent = 0;
};

// One tensor that all of `ranks` (2 or more) ranks have ready at once, without
// jitter: the reports, `report_bytes` each, queue at the root, which then sends
// a directive of `directive_bytes` to one after the other. With a gate, whose
// messages have `gate_bytes` (0: without), each rank then tells the root that
// it is about to begin, and the root tells each that all others are.
StarLoad ComputeStar(const NetworkParameters& network, int ranks,
                     int64_t report_bytes, int64_t directive_bytes,
                     int64_t gate_bytes = 0);

}  // namespace hvdlite::scale_sim
