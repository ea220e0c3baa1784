// The viewer's questions to a trace, and their answers.
#pragma once

#include <string>

#include "absl/status/status.h"
#include "timeline/report/examined.h"
#include "timeline/report/report.h"

namespace hvdlite::timeline {

// Files, ranks, time span, warnings.
void DescribeTrace(const Examined& examined, Report* report);

// What a step is made of, for all and for each rank; nothing if that is not
// recorded.
void ReportParts(const Examined& examined, Report* report);
// The costliest finding, the others' titles, and what the start took if that is
// worth a line.
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

}  // namespace hvdlite::timeline
