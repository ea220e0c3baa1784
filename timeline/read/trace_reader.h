// Reads a trace: hvdlite's, Horovod's, and Chrome's format in general.
#pragma once

#include <string>

#include "absl/status/statusor.h"
#include "timeline/read/trace.h"

namespace hvdlite::timeline {

// Reads the trace file `path`. If there is none, but parts of it are ("path"
// + ".rank00000" ...), reads them all, timestamps on rank 0's clock. Files of
// killed or still running processes are read as far as they go; what is odd
// about a file becomes a warning. Errors: NotFound; files that cannot be read,
// are empty or are no traces.
absl::StatusOr<Trace> ReadTrace(const std::string& path);

}  // namespace hvdlite::timeline
