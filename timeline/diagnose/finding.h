// What makes training steps slow, in plain words.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

namespace hvdlite::timeline {

struct Finding {
  // One of: straggler, uneven-data, uneven-cores, late-in-turns, slow-input,
  // page-faults, starved-threads, oversubscribed, small-batches, late-batches,
  // slow-data-plane, evaluation, start-up, negotiation (traces that do not
  // record steps),
  // profiled-collectives (PyTorch's profiler).
  std::string cause;
  std::string title;                  // one sentence
  std::vector<std::string> evidence;  // figures that show it, a line each
  std::string remedy;                 // what to do, with the command
  double share = 0;                   // of the step time that it costs, 0 to 1
  bool of_run = false;                // share is of the run's time
  int64_t rank = -1;                  // that it is about; -1: no single one
  int64_t start_ns = 0;  // a place in the trace where it can be seen
  int64_t end_ns = 0;
};

}  // namespace hvdlite::timeline
