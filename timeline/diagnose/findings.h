// Finds what makes training steps slow. It compares ranks, buckets and the CPU
// time of threads.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "timeline/diagnose/step_analysis.h"
#include "timeline/read/trace.h"

namespace hvdlite::timeline {

struct Finding {
  // One of: straggler, uneven-data, uneven-cores, late-in-turns, slow-input,
  // page-faults, starved-threads, oversubscribed, small-buckets, late-buckets,
  // slow-data-plane, evaluation, start-up, negotiation (traces without steps),
  // profiled-collectives (PyTorch's profiler).
  std::string cause;
  std::string title;                  // one sentence
  std::vector<std::string> evidence;  // measured facts, one per line
  std::string remedy;                 // what to do, with the command
  double share = 0;                   // cost: a part of the step time, 0 to 1
  bool of_run = false;   // share is a part of the run's time instead
  int64_t rank = -1;     // the rank to blame; -1: no single rank
  int64_t start_ns = 0;  // start and end of an example in the trace
  int64_t end_ns = 0;
};

// Returns the findings, the most expensive first; a finding about the start of
// the run is last. A finding costs at least a thirtieth of the step time.
// Waiting for ranks is reported from 8 % of all ranks' time, or from 12 % of
// the others' time if one rank is late in most steps. Lost time that one
// finding explains is not reported again by another. The result is empty if
// the trace records too little.
std::vector<Finding> FindCauses(const Trace& trace,
                                const StepAnalysis& analysis);

// For a trace without steps. Returns one finding if negotiation takes a tenth
// of the run or more. FindCauses() calls it.
std::vector<Finding> FindNegotiationCauses(const Trace& trace);

}  // namespace hvdlite::timeline
