#include "tools/timeline_viewer/examined.h"

#include <utility>

namespace hvdlite::timeline_viewer {

using timeline::StepSource;
using timeline::Trace;

Examined::Examined(std::string trace_path, Trace read)
    : path(std::move(trace_path)),
      trace(std::move(read)),
      analysis(timeline::AnalyzeSteps(trace)),
      findings(timeline::FindCauses(trace, analysis)) {}

bool Examined::has_steps() const {
  return analysis.source != StepSource::kWhole && !analysis.steps.empty();
}

Examined::Examined(Trace ranks, timeline::StepAnalysis told)
    : trace(std::move(ranks)),
      analysis(std::move(told)),
      findings(timeline::FindCauses(trace, analysis)) {}

std::string Examined::rank_word() const {
  return analysis.source == StepSource::kProfiler && !trace.profiled.has_value()
             ? "process"
             : "rank";
}

}  // namespace hvdlite::timeline_viewer
