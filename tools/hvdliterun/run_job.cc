#include "tools/hvdliterun/run_job.h"

#include <signal.h>
#include <sys/wait.h>
#include <unistd.h>

#include <cstring>
#include <optional>
#include <string>

#include "absl/strings/str_cat.h"
#include "base/status_macros.h"
#include "tools/hvdliterun/child_process.h"
#include "tools/hvdliterun/rank_reports.h"
#include "tools/hvdliterun/run_rank.h"

namespace hvdlite::launch {
namespace {

std::string Describe(const Job& job, const RankFailure& failure) {
  std::string text = absl::StrCat("hvdliterun: rank ", failure.rank, " on ",
                                  failure.host, " failed first, ");
  if (failure.exit_code > 128 && failure.exit_code < 128 + NSIG) {
    absl::StrAppend(&text, "by signal ", failure.exit_code - 128, " (",
                    strsignal(failure.exit_code - 128), ")");
  } else {
    absl::StrAppend(&text, "with exit code ", failure.exit_code);
  }
  if (failure.last_lines.empty()) {
    absl::StrAppend(&text, ", without a word\n");
  } else {
    absl::StrAppend(&text, "; its last lines:\n");
  }
  for (const std::string& line : failure.last_lines) {
    absl::StrAppend(&text, "  | ", line, "\n");
  }
  if (!job.output_dir.empty()) {
    absl::StrAppend(
        &text, "  all of them: ", LogPath(job.output_dir, failure.rank), "\n");
  }
  return text;
}

// Of a launcher that failed though no rank has told of a failure.
std::string DescribeLauncher(const std::string& program, int status) {
  std::string text = absl::StrCat("hvdliterun: ", program);
  if (WIFSIGNALED(status)) {
    absl::StrAppend(&text, " was ended by signal ", WTERMSIG(status), " (",
                    strsignal(WTERMSIG(status)), ")");
  } else {
    absl::StrAppend(&text, " ended with exit code ", ExitCode(status));
  }
  return absl::StrCat(text,
                      ", and no rank tells why: see what it says above; "
                      "--dry-run shows its command\n");
}

}  // namespace

absl::StatusOr<int> RunJob(const Job& job,
                           const base::Environment& environment) {
  RankReports reports(
      [](absl::string_view text) { WriteAll(STDERR_FILENO, text); });
  const absl::StatusOr<ChildEnd> end = RunChild(
      {.command = job.command,
       .environment = WithVariables(environment, {}),
       .signal_on_death = SIGTERM,
       .errors = Stream::kPipe,
       .on_errors = [&](absl::string_view text) { reports.Take(text); }});
  if (absl::IsNotFound(end.status())) {
    return absl::NotFoundError(absl::StrCat(
        end.status().message(),
        ": load your cluster's MPI module, or leave --launcher out"));
  }
  HVDLITE_RETURN_IF_ERROR(end.status());
  reports.End();
  if (end->ended_by_signal != 0) return 128 + end->ended_by_signal;
  if (const std::optional<RankFailure> failure = reports.First()) {
    WriteAll(STDERR_FILENO, Describe(job, *failure));
    return failure->exit_code;
  }
  if (end->status != 0) {
    WriteAll(STDERR_FILENO, DescribeLauncher(job.command.front(), end->status));
  }
  return ExitCode(end->status);
}

}  // namespace hvdlite::launch
