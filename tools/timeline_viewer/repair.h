// Makes a trace whole that is cut off or damaged.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "timeline/report/report.h"

namespace hvdlite::timeline_viewer {

struct Repair {
  int64_t events = 0;             // kept: all that are whole
  int64_t lost_bytes = 0;         // of the text
  std::vector<std::string> lost;  // for people, a line each; no more than 20
};

// Writes to `out` (packed if it ends in ".gz") what is whole in the trace file
// `path`: JSON, with the events as they stand there, and around them, if
// nothing of it is damaged, what an object holds beside them. Errors: `path`
// cannot be read or holds no event; `out` cannot be written.
absl::StatusOr<Repair> RepairTraceFile(const std::string& path,
                                       const std::string& out);

// The same, and tells people of it.
absl::Status ReportRepair(const std::string& path, const std::string& out,
                          timeline::Report* report);

}  // namespace hvdlite::timeline_viewer
