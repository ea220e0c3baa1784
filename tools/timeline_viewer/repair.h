// Repairs a trace that is cut off or damaged.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "timeline/report/report.h"

namespace hvdlite::timeline_viewer {

struct Repair {
  int64_t events = 0;             // complete events; all are kept
  int64_t lost_bytes = 0;         // of the text
  std::vector<std::string> lost;  // for people, at most 20 lines
};

// Writes the complete events of the trace file `path` to `out` as JSON (gzipped
// if `out` ends in ".gz"). The text of the events is unchanged. If `path` holds
// an object, the intact text around the events is kept, too. Errors: `path`
// cannot be read or has no complete event; `out` cannot be written.
absl::StatusOr<Repair> RepairTraceFile(const std::string& path,
                                       const std::string& out);

// The same, with a report for people.
absl::Status ReportRepair(const std::string& path, const std::string& out,
                          timeline::Report* report);

}  // namespace hvdlite::timeline_viewer
