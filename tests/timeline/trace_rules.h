// Whether a trace keeps the rules of the viewers that it may be opened in.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "absl/status/statusor.h"

namespace hvdlite::timeline {

// Breaches of one rule.
struct Violation {
  std::string kind;        // such as "tid"
  int64_t count = 0;       // of events, or of places
  int64_t first_line = 0;  // from 1, of the text that gzip packs
  std::string first;       // what is there
};

// Holds the trace file `path` against the rules that are documented for
// Chrome's trace format, and for Perfetto's and speedscope's readers of it.
// Returns the kinds of violations by the order of the rules, as far as there
// are any. Errors: it cannot be read.
absl::StatusOr<std::vector<Violation>> FindViolations(const std::string& path);

}  // namespace hvdlite::timeline
