// Starts the launcher, and tells how the job ended.
#pragma once

#include <functional>
#include <optional>
#include <string>

#include "absl/status/statusor.h"
#include "absl/time/time.h"
#include "tools/hvdliterun/launch/job.h"
#include "tools/hvdliterun/rank/rank_reports.h"

namespace hvdlite::launch {

struct JobEnd {
  // 0, 74, 85 or 130 if all ranks ended so; 128 + number of the signal by which
  // this process was told to stop; that of the first rank that failed; else the
  // launcher's.
  int exit_code = 0;
  std::optional<RankFailure> first = {};  // rank that failed
  bool told_to_stop = false;              // this process was, by a signal
  std::string summary = {};               // how it ended, in a few words
};

// The ranks are asked to stop early by SIGUSR1 (PassSignal in rank_guard.h):
// when `wants_stop` says so, and when this process gets SIGTERM, SIGINT or
// SIGUSR1.
struct JobOptions {
  // Asked about every second.
  std::function<bool()> wants_stop = {};
  // How long ranks may take to stop early before the launcher gets SIGTERM,
  // which it gets at once for a second SIGTERM or SIGINT.
  absl::Duration grace = absl::Seconds(60);
  // How long the launcher may take to end after a rank has failed.
  absl::Duration after_failure = absl::Seconds(15);
  // Whether the launcher's own news of a failure are shown, too.
  bool shows_noise = false;
};

// Runs the job to its end. A launcher that is still there `after_failure` after
// the last rank has told of its failure is ended. The last lines of the first
// rank that failed are written to standard error; what the launcher says about
// the failure (launcher_noise.h) goes to launcher.log in the job's folder for
// logs, if it has one. An error if the launcher cannot be started.
absl::StatusOr<JobEnd> RunJob(const Job& job,
                              const base::Environment& environment,
                              const JobOptions& options = {});

// Which rank failed first, how, and its last lines; those of another one that
// failed on its own if it has none. Empty if none failed on its own.
std::string DescribeFailure(const RankReports& reports,
                            const std::string& output_dir);

}  // namespace hvdlite::launch
