// One trace of the parts that the ranks of a world have recorded.
#pragma once

#include <string>

#include "absl/status/status.h"

namespace hvdlite::timeline {

// Merges the parts of ranks 0..size-1 into `path`, timestamps on rank 0's
// clock, atomically (written beside, then renamed), and removes the parts. To
// be called by one rank after all have closed. Errors: a part that is missing
// (not on a shared file system) or unreadable; the parts then stay.
absl::Status MergeTraceParts(const std::string& path, int size);

}  // namespace hvdlite::timeline
