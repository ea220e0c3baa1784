#include "tools/hvdliterun/launch/run_job.h"

#include <fcntl.h>
#include <signal.h>
#include <unistd.h>

#include <cstring>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "absl/algorithm/container.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/strip.h"
#include "absl/time/clock.h"
#include "base/descriptor.h"
#include "base/status_macros.h"
#include "support/child_process.h"
#include "timeline/diagnose/step_report.h"
#include "timeline/report/report.h"
#include "timeline/report/reports.h"
#include "tools/hvdliterun/launch/restart_policy.h"
#include "tools/hvdliterun/plan/host_environment.h"
#include "tools/hvdliterun/rank/core_report.h"
#include "tools/hvdliterun/rank/exec_rank.h"
#include "tools/hvdliterun/rank/launcher_noise.h"
#include "tools/hvdliterun/rank/leftovers.h"
#include "tools/hvdliterun/rank/rank_reports.h"

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
    absl::StrAppend(
        &text, "  complete output: ", LogPath(output_dir, failure.rank), "\n");
  }
  return text;
}

// A message about a launcher that failed although no rank reported a failure.
std::string DescribeLauncher(const std::string& program, int exit_code) {
  return absl::StrCat("hvdliterun: ", program, " ended ", HowItEnded(exit_code),
                      ", and no rank reported a failure: see its messages "
                      "above; --dry-run shows its command\n");
}

// With these, Open MPI's daemons notice a lost host or a broken link after half
// a minute instead of many minutes (4.x, 5.x). Other launchers ignore them.
void AddKeepAlives(
    const base::Environment& environment,
    std::vector<std::pair<std::string, std::string>>& variables) {
  for (const char* prefix : {"OMPI_MCA_oob_tcp_", "PRTE_MCA_oob_tcp_"}) {
    for (const auto& [name, value] :
         {std::pair("keepalive_time", "10"), std::pair("keepalive_intvl", "5"),
          std::pair("keepalive_probes", "4")}) {
      const std::string variable = absl::StrCat(prefix, name);
      if (environment.get(variable).has_value()) continue;
      variables.emplace_back(variable, value);
    }
  }
}

void TakeSteps(absl::string_view text, timeline::StepReports* steps) {
  std::optional<timeline::StepReport> report = timeline::DecodeStepReport(text);
  if (!report.has_value()) return;
  const std::optional<std::string> line = steps->Add(*std::move(report));
  if (line.has_value()) {
    OwnLog().Info(*line);
  }
}

std::string DescribeSteps(const timeline::StepReports& steps) {
  const timeline::Examined examined(steps.Ranks(), steps.Analysis());
  if (!examined.has_steps()) {
    return "hvdliterun: no rank reported a training step (--report): the "
           "program must call DistributedOptimizer::step()\n";
  }
  timeline::Report report;
  ReportParts(examined, &report);
  ReportFirstFinding(examined, &report);
  return absl::StrCat("\n", report.Text());
}

// A host may send several lines, each about some of its cores.
void TakeCores(absl::string_view text, std::vector<HostCores>* hosts) {
  std::optional<HostCores> cores = DecodeCores(text);
  if (!cores.has_value()) return;
  const auto known = absl::c_find_if(
      *hosts, [&](const HostCores& host) { return host.host == cores->host; });
  if (known == hosts->end()) {
    hosts->push_back(*std::move(cores));
  } else {
    absl::c_move(cores->cores, std::back_inserter(known->cores));
  }
}

// Stores or shows a launcher's noise.
class NoiseLog {
 public:
  NoiseLog(const std::string& output_dir, bool shown)
      : path_(output_dir.empty() ? "" : output_dir + "/launcher.log"),
        shown_(shown) {}

  void Write(absl::string_view text) {
    if (shown_) base::WriteAll(STDERR_FILENO, text);
    if (path_.empty()) return;
    if (!log_.valid()) {
      log_ = base::Descriptor(
          open(path_.c_str(), O_WRONLY | O_CREAT | O_TRUNC | O_CLOEXEC, 0666));
    }
    if (log_.valid()) base::WriteAll(log_.get(), text);
  }

  // A line that tells where the noise is; empty if nothing was left out.
  std::string Describe(const std::string& launcher, int lines) const {
    if (lines == 0 || shown_) return "";
    return absl::StrCat("  ", lines, " more lines of ", launcher, ": ",
                        log_.valid() ? path_ : "shown with --verbose", "\n");
  }

 private:
  const std::string path_;
  const bool shown_;
  base::Descriptor log_;
};

// Sends signals to the launcher while it runs.
class Supervisor {
 public:
  Supervisor(const RankReports& reports, const Job& job,
             const JobOptions& options)
      : reports_(reports),
        program_(job.command.front()),
        kind_(KindOf(job.launcher)),
        in_place_(job.exec.in_place),
        options_(options) {}

  // The signal that told this process to stop; 0: none.
  int told_by() const { return told_by_; }
  // Whether it has ended the launcher since a rank has failed.
  bool ended_after_failure() const { return ended_after_failure_; }

  void TakeSignal(int number, pid_t launcher, absl::Time now) {
    const bool ends = number == SIGTERM || number == SIGINT;
    if (number == SIGUSR2 && kind_.ends_of_sigusr2) {
      OwnLog().Warning(absl::StrCat(
          "SIGUSR2 is not passed on: it would terminate ", program_));
    } else if (!ends && number != SIGUSR1) {
      kill(launcher, number);
    } else if (ends && told_by_ != 0 && told_by_ != SIGUSR1) {
      if (now >= told_at_ + kOneRequest) End(launcher, now, "second request");
    } else {
      told_by_ = number;
      told_at_ = now;
      Ask(launcher, now);
    }
  }

  void Look(pid_t launcher, absl::Time now) {
    if (options_.wants_stop && asked_at_ == absl::InfiniteFuture() &&
        options_.wants_stop()) {
      Ask(launcher, now);
    }
    if (now >= asked_at_ + options_.grace) {
      End(launcher, now,
          absl::StrCat("the ranks did not stop within ",
                       absl::FormatDuration(options_.grace), " (--grace)"));
    }
    if (!in_place_ && reports_.failures().size() != failures_) {
      failures_ = reports_.failures().size();
      failed_at_ = now;
    }
    if (kind_.goes_on_after_failures && now >= failed_at_ + kToTell) {
      ended_after_failure_ = true;
      End(launcher, now, "");
    }
    if (now >= failed_at_ + options_.after_failure) {
      ended_after_failure_ = true;
      End(launcher, now,
          absl::StrCat("a rank has failed, and the launcher "
                       "still runs after ",
                       absl::FormatDuration(options_.after_failure)));
    }
    if (now >= ended_at_ + kAfterEnd) kill(launcher, SIGKILL);
  }

 private:
  // By then the other ranks have noticed the failure and reported their end.
  static constexpr absl::Duration kToTell = absl::Seconds(3);
  // timeout(1), for example, signals its child and then the process group.
  static constexpr absl::Duration kOneRequest = absl::Seconds(1);
  static constexpr absl::Duration kAfterEnd = absl::Seconds(10);

  void Ask(pid_t launcher, absl::Time now) {
    if (asked_at_ != absl::InfiniteFuture()) return;
    asked_at_ = now;
    kill(launcher, SIGUSR1);
  }

  // Logs a warning unless `reason` is empty.
  void End(pid_t launcher, absl::Time now, const std::string& reason) {
    if (ended_at_ != absl::InfiniteFuture()) return;
    ended_at_ = now;
    if (!reason.empty()) {
      OwnLog().Warning(absl::StrCat(reason, ": ending the launcher"));
    }
    kill(launcher, SIGTERM);
  }

  const RankReports& reports_;
  const std::string program_;
  const LauncherKind& kind_;
  const bool in_place_;  // other ranks may continue
  const JobOptions& options_;
  int told_by_ = 0;
  absl::Time told_at_ = absl::InfinitePast();
  size_t failures_ = 0;  // number of failures so far
  absl::Time asked_at_ = absl::InfiniteFuture();
  absl::Time failed_at_ = absl::InfiniteFuture();
  absl::Time ended_at_ = absl::InfiniteFuture();
  bool ended_after_failure_ = false;
};

// Turns `end`, the end of the launcher, into the end of the job. Returns the
// message about it. `told`: the signal that told this process to stop; 0: none.
std::string Judge(const Job& job, const RankReports& reports, int told,
                  JobEnd& end) {
  // With --in-place, some ranks may have been lost before.
  const auto have_ended = [&](const auto& so) {
    return end.first.has_value() &&
           (job.exec.in_place ? absl::c_any_of(reports.failures(), so)
                              : absl::c_all_of(reports.failures(), so));
  };
  const auto saved = [](const RankFailure& failure) {
    return failure.exit_code == kStoppedEarlyExitCode;
  };
  const auto say = [&](const std::string& summary) {
    end.summary = summary;
    return absl::StrCat("hvdliterun: ", summary, "\n");
  };
  if (have_ended([&](const RankFailure& failure) {
        // The launcher may have ended other ranks because of this code.
        return failure.exit_code == kReportLostExitCode ||
               (failure.was_told && !job.exec.in_place);
      })) {
    end.exit_code = kReportLostExitCode;
    end.first.reset();
    return say(
        absl::StrCat("done, but a report could not be written (exit code ",
                     kReportLostExitCode, ")"));
  }
  if (have_ended([&](const RankFailure& failure) {
        // A rank that got a SIGINT itself has saved or was terminated by it.
        return saved(failure) ||
               (told == 0 && failure.exit_code == kInterruptedExitCode);
      })) {
    const bool any_saved = absl::c_any_of(reports.failures(), saved);
    end.exit_code = told == SIGINT || !any_saved ? kInterruptedExitCode
                                                 : kStoppedEarlyExitCode;
    return say(any_saved ? "stopped early as requested and can be resumed"
                         : "interrupted");
  }
  if (told != 0 && (told != SIGUSR1 || end.exit_code != 0)) {
    end.exit_code = 128 + told;
    end.summary = absl::StrCat("ended by a signal (", strsignal(told), ")");
    return absl::StrCat(
        "hvdliterun: ", end.summary,
        "; the program has not reported that it saved anything\n");
  }
  if (job.exec.in_place && reports.successes() > 0) {
    end.exit_code = 0;
    // Ranks of a lost host have reported nothing.
    const int lost = job.ranks - reports.successes();
    if (lost > 0) {
      end.first.reset();
      return say(absl::StrCat("done without ", lost, " of ", job.ranks,
                              " ranks")) +
             DescribeFailure(reports, job.exec.output_dir);
    }
  } else if (end.first.has_value()) {
    end.exit_code = end.first->exit_code;
    end.summary =
        absl::StrCat("rank ", end.first->rank, " on ", end.first->host,
                     " failed first, ", HowItEnded(end.exit_code));
    return DescribeFailure(reports, job.exec.output_dir);
  } else if (end.exit_code != 0) {
    end.summary =
        absl::StrCat("the launcher ended ", HowItEnded(end.exit_code));
    return DescribeLauncher(job.command.front(), end.exit_code);
  }
  end.summary = "done";
  return "";
}

}  // namespace

std::string DescribeFailure(const RankReports& reports,
                            const std::string& output_dir) {
  const std::optional<RankFailure> first = reports.First();
  if (!first.has_value()) return "";
  // The rank that is the cause may have been killed before it could report.
  const std::string text = absl::StrCat(
      "hvdliterun: ",
      first->reason.empty()
          ? ""
          : absl::StrCat(absl::StripSuffix(first->reason, "."), "; then "),
      "rank ", first->rank, " on ", first->host, " failed",
      first->reason.empty() ? " first, " : ", ", HowItEnded(first->exit_code));
  if (!first->last_lines.empty()) {
    return absl::StrCat(text, "; its last lines:\n",
                        LastLines(*first, output_dir));
  }
  // Many programs print errors only on rank 0.
  for (const RankFailure& other : reports.failures()) {
    if (other.last_lines.empty() || other.was_told) continue;
    return absl::StrCat(text, ", with no output; rank ", other.rank, " on ",
                        other.host, " failed, too, ",
                        HowItEnded(other.exit_code), "; its last lines:\n",
                        LastLines(other, output_dir));
  }
  return absl::StrCat(text, ", with no output\n",
                      LastLines(*first, output_dir));
}

absl::StatusOr<JobEnd> RunJob(const Job& job,
                              const base::Environment& environment,
                              const JobOptions& options) {
  timeline::StepReports steps;
  std::vector<HostCores> cores;
  NoiseLog noise_log(job.exec.output_dir, options.shows_noise);
  const auto leave_out = [&](absl::string_view text) { noise_log.Write(text); };
  LauncherNoise noise(
      [](absl::string_view text) { base::WriteAll(STDERR_FILENO, text); },
      leave_out);
  LauncherNoise noise_on_output(
      [](absl::string_view text) { base::WriteAll(STDOUT_FILENO, text); },
      leave_out);
  RankReports reports(
      [&](absl::string_view text) {
        // With --in-place the launcher's messages are not noise.
        if (!job.exec.in_place && reports.First().has_value()) noise.Begin();
        noise.Take(text);
      },
      [&steps](absl::string_view text) { TakeSteps(text, &steps); },
      [&cores](absl::string_view text) { TakeCores(text, &cores); });
  Supervisor supervisor(reports, job, options);
  std::vector<std::pair<std::string, std::string>> variables =
      job.launcher_environment;
  AddKeepAlives(environment, variables);
  pid_t launcher_id = 0;
  const absl::StatusOr<support::ChildEnd> end = support::RunChild(
      {.command = job.command,
       .environment = base::EnvironmentEntries(environment, variables),
       .signal_on_death = SIGTERM,
       .output = KindOf(job.launcher).tells_on_output
                     ? support::Stream::kPipe
                     : support::Stream::kInherited,
       .errors = support::Stream::kPipe,
       .on_output =
           [&](absl::string_view text) {
             if (reports.First().has_value()) noise_on_output.Begin();
             noise_on_output.Take(text);
           },
       .on_errors = [&](absl::string_view text) { reports.Take(text); },
       .before_program = [&](pid_t id) { launcher_id = id; },
       .on_signal =
           [&](int number, pid_t launcher) {
             supervisor.TakeSignal(number, launcher, absl::Now());
           },
       .every_second =
           [&](pid_t launcher) { supervisor.Look(launcher, absl::Now()); }});
  reports.End();
  noise.End();
  noise_on_output.End();
  if (absl::IsNotFound(end.status())) {
    return absl::NotFoundError(
        absl::StrCat(end.status().message(),
                     ": load your cluster's MPI module, or remove --launcher"));
  }
  HVDLITE_RETURN_IF_ERROR(end.status());
  // A launcher that was killed has left its session directories.
  RemoveSessionsOf(launcher_id,
                   {.host = base::HostName(),
                    .temporary = environment.get("TMPDIR").value_or("/tmp")});
  if (job.exec.report) {
    base::WriteAll(STDERR_FILENO,
                   absl::StrCat(DescribeSteps(steps), DescribeCores(cores)));
  }
  const int told = supervisor.told_by() != 0          ? supervisor.told_by()
                   : supervisor.ended_after_failure() ? 0
                                                      : end->ended_by_signal;
  JobEnd result = {.exit_code = end->exit_code,
                   .first = reports.First(),
                   .told_to_stop = told != 0};
  const std::string text = Judge(job, reports, told, result);
  base::WriteAll(STDERR_FILENO,
                 absl::StrCat(text, noise_log.Describe(
                                        job.command.front(),
                                        noise.lines_left_out() +
                                            noise_on_output.lines_left_out())));
  return result;
}

}  // namespace hvdlite::launch
