// Reads traces of hvdlite, of Horovod, and in Chrome's format in general.
#pragma once

#include <string>

#include "absl/status/statusor.h"
#include "timeline/read/trace.h"

namespace hvdlite::timeline {

// Reads the trace file `path`. If it does not exist, reads its per-rank trace
// files (`path` + ".rank00000", ...), with times of rank 0's clock. Files of
// killed or running processes are read as far as they are complete; problems
// become warnings. Errors: NotFound; a file cannot be read, is empty or is not
// a trace.
absl::StatusOr<Trace> ReadTrace(const std::string& path);

}  // namespace hvdlite::timeline
