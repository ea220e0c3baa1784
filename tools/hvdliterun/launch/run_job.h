// Starts the launcher, and tells how the job ended.
#pragma once

#include <functional>
#include <optional>
#include <string>

#include "absl/status/statusor.h"
#include "tools/hvdliterun/launch/job.h"
#include "tools/hvdliterun/rank/rank_reports.h"

namespace hvdlite::launch {

struct JobEnd {
  // That of the first rank that failed; 128 + number of the signal that ended
  // this process's job; else the launcher's.
  int exit_code = 0;
  std::optional<RankFailure> first = {};  // rank that failed
  bool told_to_stop = false;              // this process was, by a signal
  std::string summary = {};               // how it ended, in a few words
};

struct JobOptions {
  // Asked about every second; once it is true the ranks get SIGUSR1, by which
  // they are asked to stop early.
  std::function<bool()> wants_stop = {};
};

// Runs the job to its end; signals are passed on to it. The last lines of the
// first rank that failed are written to standard error. An error if the
// launcher cannot be started.
absl::StatusOr<JobEnd> RunJob(const Job& job,
                              const base::Environment& environment,
                              const JobOptions& options = {});

// Which rank failed first, how, and its last lines; those of another one that
// failed on its own if it has none. Empty if none failed on its own.
std::string DescribeFailure(const RankReports& reports,
                            const std::string& output_dir);

}  // namespace hvdlite::launch
