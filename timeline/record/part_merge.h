// Merges the per-rank trace files of a world into one trace.
#pragma once

#include <string>

#include "absl/status/status.h"

namespace hvdlite::timeline {

// Merges the files of ranks 0..size-1 into `path`, with times of rank 0's
// clock, and removes them. The merge is atomic (written beside, then renamed).
// One rank calls it after all ranks have closed their files. Errors: a file is
// missing (not on a shared file system) or unreadable; all files are then kept.
absl::Status MergeTraceParts(const std::string& path, int size);

}  // namespace hvdlite::timeline
