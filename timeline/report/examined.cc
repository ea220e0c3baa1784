#include "timeline/report/examined.h"

#include <utility>

namespace hvdlite::timeline {

Examined::Examined(std::string trace_path, Trace read)
    : path(std::move(trace_path)),
      trace(std::move(read)),
      analysis(AnalyzeSteps(trace)),
      findings(FindCauses(trace, analysis)) {}

bool Examined::has_steps() const {
  return analysis.source != StepSource::kWhole && !analysis.steps.empty();
}

Examined::Examined(Trace ranks, StepAnalysis told)
    : trace(std::move(ranks)),
      analysis(std::move(told)),
      findings(FindCauses(trace, analysis)) {}

std::string Examined::rank_word() const {
  return analysis.source == StepSource::kProfiler && !trace.profiled.has_value()
             ? "process"
             : "rank";
}

}  // namespace hvdlite::timeline
