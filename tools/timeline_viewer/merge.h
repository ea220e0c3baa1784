// One trace of several files, clocks aligned.
#pragma once

#include <string>
#include <vector>

#include "absl/status/status.h"
#include "timeline/report/report.h"

namespace hvdlite::timeline_viewer {

// Writes all of `files` to `out`, and tells people how well their clocks agree.
// With `force` also what tells no clock offset, as if it were 0. Errors leave
// `out` as it was.
absl::Status ReportMerge(const std::vector<std::string>& files,
                         const std::string& out, bool force,
                         timeline::Report* report);

}  // namespace hvdlite::timeline_viewer
