// Merges trace files into one trace with aligned clocks.
#pragma once

#include <string>
#include <vector>

#include "absl/status/status.h"
#include "timeline/report/report.h"

namespace hvdlite::timeline_viewer {

// Merges `files` into `out` and reports how well their clocks agree. With
// `force`, also merges files without a clock offset, as if it were 0. After an
// error, `out` is unchanged.
absl::Status ReportMerge(const std::vector<std::string>& files,
                         const std::string& out, bool force,
                         timeline::Report* report);

}  // namespace hvdlite::timeline_viewer
