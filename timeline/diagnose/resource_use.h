// What threads got of the CPUs, from the counters of a trace.
#pragma once

#include <cstdint>
#include <map>
#include <utility>

#include "timeline/read/trace.h"

namespace hvdlite::timeline {

// What a rank's threads got, per second of the time that was sampled.
struct ResourceUse {
  double seconds = 0;  // sampled; 0: nothing is known
  // Shares of a core: running, and runnable without a core.
  double progress_cpu = 0;
  double progress_delay = 0;
  double main_cpu = 0;
  double main_delay = 0;
  double compute_cpu = 0;    // sum over the application's threads
  double compute_delay = 0;  // the same
  double threads = 0;        // of the application that were busy
  double system_cpu = 0;
  double major_faults = 0;
  double minor_faults = 0;
  double progress_switches = 0;  // involuntary
};

// Of the ranks in `windows`, each in its own: from and to, in ns.
std::map<int64_t, ResourceUse> FindResourceUse(
    const Trace& trace,
    const std::map<int64_t, std::pair<int64_t, int64_t>>& windows);

}  // namespace hvdlite::timeline
