// Finds what makes training steps slow, by comparing ranks, batches and what
// the threads got of the CPUs.
#pragma once

#include <vector>

#include "timeline/diagnose/finding.h"
#include "timeline/diagnose/step_analysis.h"
#include "timeline/read/trace.h"

namespace hvdlite::timeline {

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
