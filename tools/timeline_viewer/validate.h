// Whether a trace keeps the rules of the viewers that it may be opened in.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "absl/status/statusor.h"
#include "tools/timeline_viewer/report.h"

namespace hvdlite::timeline_viewer {

// Breaches of one rule.
struct Violation {
  std::string kind;        // such as "tid"
  std::string rule;        // what the rule asks for
  int64_t count = 0;       // of events, or of places
  int64_t first_line = 0;  // from 1, of the text that gzip packs
  std::string first;       // what is there
};

// Holds the trace file `path` against the rules that are documented for
// Chrome's trace format, and for Perfetto's and speedscope's readers of it.
// Returns the kinds of violations by the order of the rules, as far as there
// are any. Errors: it cannot be read.
absl::StatusOr<std::vector<Violation>> ValidateTraceFile(
    const std::string& path);

// Validates `path`, or the parts of it that there are, for people. Returns
// whether there are violations.
absl::StatusOr<bool> ReportViolations(const std::string& path, Report* report);

}  // namespace hvdlite::timeline_viewer
