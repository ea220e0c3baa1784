// Starts the launcher and reports how the job ended.
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
  // 0, 74, 85 or 130 if all ranks ended with this code; 128 + the number of the
  // signal that stopped this process; the code of the rank that failed first;
  // else the launcher's.
  int exit_code = 0;
  std::optional<RankFailure> first = {};  // the rank that failed first
  bool told_to_stop = false;              // a signal told this process to stop
  std::string summary = {};               // short text: how the job ended
};

// SIGUSR1 asks the ranks to stop early (PassSignal in rank_guard.h). It is sent
// when `wants_stop` returns true, and when this process gets SIGTERM, SIGINT or
// SIGUSR1.
struct JobOptions {
  // Called about every second.
  std::function<bool()> wants_stop = {};
  // How long ranks may take to stop early. Then the launcher gets SIGTERM. A
  // second SIGTERM or SIGINT to this process sends it immediately.
  absl::Duration grace = absl::Seconds(60);
  // How long the launcher may run after a rank has failed.
  absl::Duration after_failure = absl::Seconds(15);
  // Whether the launcher's own messages about a failure are shown, too.
  bool shows_noise = false;
};

// Runs the job to its end. Ends a launcher that still runs `after_failure`
// after the last rank reported a failure. Writes the last lines of the rank
// that failed first to standard error. The launcher's messages about the
// failure (launcher_noise.h) go to launcher.log in the job's log directory, if
// there is one. Error: the launcher cannot be started.
absl::StatusOr<JobEnd> RunJob(const Job& job,
                              const base::Environment& environment,
                              const JobOptions& options = {});

// A text about the rank that failed first: how it failed and its last lines. If
// it has none: the last lines of another rank that failed on its own. Empty if
// no rank failed on its own.
std::string DescribeFailure(const RankReports& reports,
                            const std::string& output_dir);

}  // namespace hvdlite::launch
