// The viewer's questions to a trace, and their answers.
#pragma once

#include <string>
#include <vector>

#include "absl/status/statusor.h"
#include "timeline/findings.h"
#include "timeline/step_analysis.h"
#include "timeline/trace_reader.h"
#include "tools/timeline_viewer/report.h"

namespace hvdlite::timeline_viewer {

// A trace and what is known of it.
struct Examined {
  Examined(std::string trace_path, timeline::Trace read);
  // Without a trace: of what ranks told while they ran.
  Examined(timeline::Trace ranks, timeline::StepAnalysis told);

  const std::string path;  // as it was asked for; empty: there is none
  const timeline::Trace trace;
  const timeline::StepAnalysis analysis;
  const std::vector<timeline::Finding> findings;

  bool has_steps() const;  // else the whole trace stands for one
};

// Files, ranks, time span, warnings.
void DescribeTrace(const Examined& examined, Report* report);

// What a step is made of, for all and for each rank; nothing if that is not
// recorded.
void ReportParts(const Examined& examined, Report* report);
// The costliest finding, and how many more there are.
void ReportFirstFinding(const Examined& examined, Report* report);

void ReportWhy(const Examined& examined, Report* report);
void ReportSteps(const Examined& examined, Report* report);
void ReportStragglers(const Examined& examined, Report* report);
void ReportOverlap(const Examined& examined, Report* report);
void ReportFusion(const Examined& examined, Report* report);
void ReportBandwidth(const Examined& examined, Report* report);
void ReportCriticalPath(const Examined& examined, Report* report);
void ReportDifference(const Examined& before, const Examined& after,
                      Report* report);

// Errors: NotFound, which names some of the tensors that there are.
absl::Status ReportTensor(const Examined& examined, const std::string& name,
                          Report* report);

}  // namespace hvdlite::timeline_viewer
