// Starts the launcher, and tells how the job ended.
#pragma once

#include <string>

#include "absl/status/statusor.h"
#include "tools/hvdliterun/launch/job.h"
#include "tools/hvdliterun/rank/rank_reports.h"

namespace hvdlite::launch {

// Runs the job to its end; signals are passed on to it. Returns its exit code:
// that of the first rank that failed, whose last lines are written to standard
// error; 128 + number of the signal that ended this process; else the
// launcher's. An error if the launcher cannot be started.
absl::StatusOr<int> RunJob(const Job& job,
                           const base::Environment& environment);

// Which rank failed first, how, and its last lines; those of another one that
// failed on its own if it has none. Empty if none failed on its own.
std::string DescribeFailure(const RankReports& reports,
                            const std::string& output_dir);

}  // namespace hvdlite::launch
