// Starts the launcher, and tells how the job ended.
#pragma once

#include "absl/status/statusor.h"
#include "tools/hvdliterun/job.h"

namespace hvdlite::launch {

// Runs the job to its end; signals are passed on to it. Returns its exit code:
// that of the first rank that failed, whose last lines are written to standard
// error; 128 + number of the signal that ended this process; else the
// launcher's. An error if the launcher cannot be started.
absl::StatusOr<int> RunJob(const Job& job,
                           const base::Environment& environment);

}  // namespace hvdlite::launch
