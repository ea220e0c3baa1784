// Finds what makes training steps slow, by comparing ranks, batches and what
// the threads got of the CPUs.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "timeline/diagnose/step_analysis.h"
#include "timeline/read/trace.h"

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

// The costliest first. Empty: nothing costs a thirtieth of the step time
// (waiting for ranks: 8 % of all ranks' time, or 12 % of the others' where one
// rank is late in most steps), or the trace tells too little. What one cause
// explains is in its finding alone. Of the start of the run, which is told
// last, at most one.
std::vector<Finding> FindCauses(const Trace& trace,
                                const StepAnalysis& analysis);

// Of a trace without steps: one finding, where negotiation takes a tenth of the
// run or more. FindCauses() asks for it.
std::vector<Finding> FindNegotiationCauses(const Trace& trace);

}  // namespace hvdlite::timeline
