#include "tools/hvdliterun/launch/run_job.h"

#include <signal.h>
#include <unistd.h>

#include <cstring>
#include <optional>
#include <string>

#include "absl/strings/str_cat.h"
#include "base/status_macros.h"
#include "tools/hvdliterun/rank/exec_rank.h"
#include "tools/hvdliterun/rank/rank_reports.h"
#include "tools/support/child_process.h"

namespace hvdlite::launch {
namespace {

// "with exit code 5", "by signal 11 (Segmentation fault)".
std::string HowItEnded(int exit_code) {
  const int signal = exit_code - 128;
  return signal > 0 && signal < NSIG
             ? absl::StrCat("by signal ", signal, " (", strsignal(signal), ")")
             : absl::StrCat("with exit code ", exit_code);
}

std::string LastLines(const RankFailure& failure,
                      const std::string& output_dir) {
  std::string text;
  for (const std::string& line : failure.last_lines) {
    absl::StrAppend(&text, "  | ", line, "\n");
  }
  if (!output_dir.empty()) {
    absl::StrAppend(&text, "  all of them: ", LogPath(output_dir, failure.rank),
                    "\n");
  }
  return text;
}

// Of a launcher that failed though no rank has told of a failure.
std::string DescribeLauncher(const std::string& program, int exit_code) {
  return absl::StrCat("hvdliterun: ", program, " ended ", HowItEnded(exit_code),
                      ", and no rank tells why: see what it says above; "
                      "--dry-run shows its command\n");
}

}  // namespace

std::string DescribeFailure(const RankReports& reports,
                            const std::string& output_dir) {
  const std::optional<RankFailure> first = reports.First();
  if (!first.has_value()) return "";
  // The rank that is the cause may have been killed before it could tell.
  const std::string text = absl::StrCat(
      "hvdliterun: ",
      first->reason.empty() ? "" : absl::StrCat(first->reason, "; then "),
      "rank ", first->rank, " on ", first->host, " failed",
      first->reason.empty() ? " first, " : ", ", HowItEnded(first->exit_code));
  if (!first->last_lines.empty()) {
    return absl::StrCat(text, "; its last lines:\n",
                        LastLines(*first, output_dir));
  }
  // Many programs complain on rank 0 alone.
  for (const RankFailure& other : reports.failures()) {
    if (other.last_lines.empty() || other.was_told) continue;
    return absl::StrCat(text, ", without a word; so did rank ", other.rank,
                        " on ", other.host, ", ", HowItEnded(other.exit_code),
                        ", with the last lines:\n",
                        LastLines(other, output_dir));
  }
  return absl::StrCat(text, ", without a word\n",
                      LastLines(*first, output_dir));
}

absl::StatusOr<JobEnd> RunJob(const Job& job,
                              const base::Environment& environment,
                              const JobOptions& options) {
  RankReports reports(
      [](absl::string_view text) { support::WriteAll(STDERR_FILENO, text); });
  bool asked = false;
  const auto ask = [&](pid_t launcher) {
    if (asked || !options.wants_stop()) return;
    asked = true;
    kill(launcher, SIGUSR1);
  };
  const absl::StatusOr<support::ChildEnd> end = support::RunChild(
      {.command = job.command,
       .environment =
           base::EnvironmentEntries(environment, job.launcher_environment),
       .signal_on_death = SIGTERM,
       .errors = support::Stream::kPipe,
       .on_errors = [&](absl::string_view text) { reports.Take(text); },
       .every_second =
           options.wants_stop ? std::function<void(pid_t)>(ask) : nullptr});
  if (absl::IsNotFound(end.status())) {
    return absl::NotFoundError(absl::StrCat(
        end.status().message(),
        ": load your cluster's MPI module, or leave --launcher out"));
  }
  HVDLITE_RETURN_IF_ERROR(end.status());
  reports.End();
  JobEnd result = {.exit_code = end->exit_code, .first = reports.First()};
  if (end->ended_by_signal != 0) {
    result.exit_code = 128 + end->ended_by_signal;
    result.told_to_stop = true;
    result.summary = absl::StrCat("ended by ", strsignal(end->ended_by_signal));
  } else if (result.first.has_value()) {
    result.exit_code = result.first->exit_code;
    result.summary =
        absl::StrCat("rank ", result.first->rank, " on ", result.first->host,
                     " failed first, ", HowItEnded(result.exit_code));
    support::WriteAll(STDERR_FILENO, DescribeFailure(reports, job.output_dir));
  } else if (end->exit_code != 0) {
    result.summary =
        absl::StrCat("the launcher ended ", HowItEnded(end->exit_code));
    support::WriteAll(STDERR_FILENO,
                      DescribeLauncher(job.command.front(), end->exit_code));
  } else {
    result.summary = "done";
  }
  return result;
}

}  // namespace hvdlite::launch
