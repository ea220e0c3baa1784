// The reports of timeline_viewer, one for each command.
#pragma once

#include <string>

#include "absl/status/status.h"
#include "timeline/report/examined.h"
#include "timeline/report/report.h"

namespace hvdlite::timeline {

// Reports files, ranks, time span and warnings.
void DescribeTrace(const Examined& examined, Report* report);

// Reports the parts of a step, for all ranks and for each; nothing if the trace
// does not record them.
void ReportParts(const Examined& examined, Report* report);
// Reports the most expensive finding, the titles of the others, and a long
// start.
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

// Errors: NotFound; the message lists some existing tensors.
absl::Status ReportTensor(const Examined& examined, const std::string& name,
                          Report* report);

}  // namespace hvdlite::timeline
