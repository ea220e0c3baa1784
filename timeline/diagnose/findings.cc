#include "timeline/diagnose/findings.h"

#include <algorithm>

#include "timeline/diagnose/examiner.h"

namespace hvdlite::timeline {

std::vector<Finding> FindCauses(const Trace& trace,
                                const StepAnalysis& analysis) {
  const bool is_ours =
      std::any_of(trace.processes.begin(), trace.processes.end(),
                  [](const auto& process) { return process.second.is_rank; });
  if (!is_ours && analysis.source == StepSource::kWhole) {
    return FindNegotiationCauses(trace);
  }
  if (analysis.source == StepSource::kProfiler) {
    return Examiner(trace, analysis).ExamineProfile();
  }
  if (analysis.source != StepSource::kRecorded || !analysis.knows_waits) {
    return {};
  }
  return Examiner(trace, analysis).Examine();
}

}  // namespace hvdlite::timeline
