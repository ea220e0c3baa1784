// How much CPU time the threads got, from the counters of a trace.
#pragma once

#include <cstdint>
#include <map>
#include <utility>

#include "timeline/read/trace.h"

namespace hvdlite::timeline {

// Resource use of a rank's threads, per second of the sampled time.
struct ResourceUse {
  double seconds = 0;  // sampled time; 0: nothing is known
  // Parts of a core: running (cpu), and runnable without a core (delay).
  double progress_cpu = 0;
  double progress_delay = 0;
  double main_cpu = 0;
  double main_delay = 0;
  double compute_cpu = 0;    // sum over the application's threads
  double compute_delay = 0;  // the same
  double threads = 0;        // busy threads of the application
  double system_cpu = 0;
  double major_faults = 0;
  double minor_faults = 0;
  double progress_switches = 0;  // involuntary
};

// For each rank in `windows`, which holds its begin and end in ns.
std::map<int64_t, ResourceUse> FindResourceUse(
    const Trace& trace,
    const std::map<int64_t, std::pair<int64_t, int64_t>>& windows);

}  // namespace hvdlite::timeline
