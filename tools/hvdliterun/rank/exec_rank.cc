#include "tools/hvdliterun/rank/exec_rank.h"

#include <fcntl.h>
#include <signal.h>
#include <sys/ioctl.h>
#include <unistd.h>

#include <array>
#include <cerrno>
#include <cstring>
#include <filesystem>
#include <iostream>
#include <system_error>
#include <utility>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_split.h"
#include "absl/time/clock.h"
#include "absl/time/time.h"
#include "base/clock.h"
#include "base/contain_exceptions.h"
#include "base/descriptor.h"
#include "base/end_note.h"
#include "base/environment.h"
#include "base/launcher_environment.h"
#include "base/status_macros.h"
#include "support/child_process.h"
#include "support/libraries.h"
#include "support/terminal.h"
#include "timeline/diagnose/step_report.h"
#include "tools/hvdliterun/plan/host_environment.h"
#include "tools/hvdliterun/plan/settings.h"
#include "tools/hvdliterun/rank/binding.h"
#include "tools/hvdliterun/rank/core_report.h"
#include "tools/hvdliterun/rank/leftovers.h"
#include "tools/hvdliterun/rank/rank_command.h"
#include "tools/hvdliterun/rank/rank_guard.h"
#include "tools/hvdliterun/rank/rank_reports.h"

namespace hvdlite::launch {
namespace {

constexpr size_t kLastLines = 20;

absl::StatusOr<base::Descriptor> OpenLog(const std::string& directory,
                                         int rank) {
  std::error_code error;
  std::filesystem::create_directories(directory, error);
  const std::string path = LogPath(directory, rank);
  base::Descriptor log(
      open(path.c_str(), O_WRONLY | O_CREAT | O_TRUNC | O_CLOEXEC, 0666));
  if (!log.valid()) {
    return absl::PermissionDeniedError(
        absl::StrCat("cannot write ", path, ": ", std::strerror(errno)));
  }
  return log;
}

// The plans of all ranks that share `machine`: the ranks of the host, which all
// make the same plans; or only this rank, if the launcher has bound it.
absl::StatusOr<std::vector<RankPlan>> PlansOf(const Machine& machine,
                                              const RankIdentity& identity,
                                              const ExecRankOptions& options) {
  PlanOptions plan = options.plan;
  if (options.bound_by_launcher) {
    plan.domain = Domain::kNode;
    return PlanHost(machine, 1, plan);
  }
  if (!identity.local_size.has_value()) {
    return absl::FailedPreconditionError(
        "the launcher does not report how many ranks this host has: start the "
        "same number of ranks on each host (-np)");
  }
  return PlanHost(machine, *identity.local_size, plan);
}

Variables VariablesOf(const Machine& machine, const RankPlan& plan,
                      const ExecRankOptions& options) {
  Variables variables(base::ProcessEnvironment());
  for (const std::string& setting : options.settings) {
    const std::pair<std::string, std::string> sides =
        absl::StrSplit(setting, absl::MaxSplits('=', 1));
    variables.Set(sides.first, sides.second, "hvdliterun");
  }
  AddRankVariables(machine, plan, options.choices, variables);
  if (!options.openblas.empty() && !variables.Has("OPENBLAS_CORETYPE")) {
    const std::string core = support::BetterOpenBlasCoreHere(options.openblas);
    if (!core.empty()) variables.Set("OPENBLAS_CORETYPE", core, "default");
  }
  return variables;
}

// Passes on the rank's output and keeps its last lines.
struct Output {
  OutputTail tail{kLastLines};
  base::Descriptor log;
  bool shown = true;  // also on this process's own streams
  std::function<void(const std::string&)> complain;

  void Take(int descriptor, absl::string_view text) {
    tail.Take(text);
    if (log.valid()) {
      const int error = base::WriteAll(log.get(), text);
      if (error != 0) {
        complain(absl::StrCat(
            "cannot write its log any more: ", std::strerror(error),
            "; its output is shown here from now on"));
        log = base::Descriptor();
        shown = true;
      }
    }
    if (shown) base::WriteAll(descriptor, text);
  }
};

// Passes on a rank's reports about its steps, line by line.
class StepLines {
 public:
  explicit StepLines(std::function<void(absl::string_view)> also_to)
      : also_to_(std::move(also_to)) {}

  void PassOn(const base::Descriptor& pipe) {
    if (!pipe.valid()) return;
    std::array<char, 4096> text;
    for (ssize_t size = 0;
         (size = read(pipe.get(), text.data(), text.size())) > 0;) {
      begun_.append(text.data(), static_cast<size_t>(size));
    }
    for (size_t end = 0; (end = begun_.find('\n')) != std::string::npos;) {
      const std::string line = begun_.substr(0, end);
      base::WriteAll(STDERR_FILENO, StepReportLine(line));
      also_to_(line);
      begun_.erase(0, end + 1);
    }
  }

 private:
  std::function<void(absl::string_view)> also_to_;
  std::string begun_;
};

// Reports to hvdliterun through the launcher's standard error. srun ends a job
// when the first rank ends, and drops output that it has not passed on.
// Therefore this returns a moment after the text has been read.
void Tell(const RankFailure& failure) {
  constexpr absl::Duration kToRead = absl::Seconds(1);
  constexpr absl::Duration kToSend = absl::Milliseconds(100);
  base::WriteAll(STDERR_FILENO, ReportLine(failure));
  if (failure.was_told) return;  // the job is ending
  const absl::Time until = absl::Now() + kToRead;
  int unread = 0;
  while (ioctl(STDERR_FILENO, FIONREAD, &unread) == 0 && unread > 0 &&
         absl::Now() < until) {
    absl::SleepFor(absl::Milliseconds(1));
  }
  absl::SleepFor(kToSend);
}

// Warns if a rank's threads are not where the plan has them, and names the
// cause.
class RankBinding {
 public:
  RankBinding(const RankPlan& plan, const Variables& variables,
              support::OpenMpRuntime openmp, const base::Logger& log)
      : plan_(plan), variables_(variables), openmp_(openmp), log_(log) {}

  // Must be called about every second, `passed` after the start of the program.
  void Look(absl::Duration passed, pid_t program) {
    const std::string difference = watch_.Look(passed, [&] {
      return DifferenceFromPlan(ThreadsOfGroup(program), plan_, program,
                                ThreadsAreFree(variables_));
    });
    if (difference.empty()) return;
    log_.Warning(absl::StrCat(
        absl::FormatDuration(absl::Trunc(passed, absl::Seconds(1))),
        " after the start, ", difference, "; ",
        HowToStopBinding(variables_, plan_,
                         OwnArrangement(openmp_, variables_))));
  }

 private:
  const RankPlan& plan_;
  const Variables& variables_;
  const support::OpenMpRuntime openmp_;
  const base::Logger& log_;
  BindingWatch watch_;
};

absl::StatusOr<int> RunProgram(const RankIdentity& identity,
                               const ExecRankOptions& options) {
  // Under Fujitsu's mpiexec it is not known whether a rank's parent stays.
  const std::optional<pid_t> launcher =
      options.bound_by_launcher ? std::nullopt : std::optional(getppid());
  HVDLITE_ASSIGN_OR_RETURN(const Machine machine, ThisMachine());
  HVDLITE_ASSIGN_OR_RETURN(const std::vector<RankPlan> plans,
                           PlansOf(machine, identity, options));
  const int first_rank = options.bound_by_launcher ? identity.local_rank : 0;
  const RankPlan& plan =
      plans[static_cast<size_t>(identity.local_rank - first_rank)];
  const Variables variables = VariablesOf(machine, plan, options);
  const base::Logger log = OwnLog(identity.rank);

  if (identity.local_rank == 0) {
    RemoveLeftovers(
        {.host = base::HostName(),
         .temporary =
             base::ProcessEnvironment().get("TMPDIR").value_or("/tmp")},
        absl::Now());
  }

  Output output;
  const bool logs = !options.output_dir.empty();
  if (logs) {
    HVDLITE_ASSIGN_OR_RETURN(output.log,
                             OpenLog(options.output_dir, identity.rank));
    output.shown = identity.rank == 0;
    output.complain = [&](const std::string& text) { log.Warning(text); };
  }
  RankBinding binding(plan, variables, options.choices.openmp, log);
  std::optional<GroupReaper> reaper;
  HVDLITE_ASSIGN_OR_RETURN(const base::Descriptor note, base::MakeEndNote());
  std::vector<std::pair<std::string, std::string>> changes =
      PairsOf(variables.changes());
  changes.emplace_back(base::kEndNoteVariable, absl::StrCat(note.get()));
  if (options.terminal) {
    changes.emplace_back(base::kTerminalVariable,
                         support::StreamIdentity(STDOUT_FILENO));
  }
  timeline::StepReportEnds steps;
  if (options.report) {
    HVDLITE_ASSIGN_OR_RETURN(steps, timeline::MakeStepReportPipe());
    changes.emplace_back(base::kStepReportVariable,
                         absl::StrCat(steps.write.get()));
  }
  // One rank watches the cores of all ranks that share them.
  std::optional<TrainingCores> cores;
  const base::SteadyClock clock;
  const int64_t start_ns = clock.NowNanos();
  if (options.report && identity.local_rank == first_rank) {
    cores.emplace(machine, plans, first_rank);
    cores->Look(start_ns);
  }
  StepLines step_lines([&](absl::string_view line) {
    const auto report = timeline::DecodeStepReport(line);
    if (cores.has_value() && report.has_value()) {
      cores->SawSteps(report->start_ns);
    }
  });
  absl::Status begun;
  bool has_told = false;
  // The launcher may kill the rank before it ends itself.
  const auto tell_at_once = [&] {
    const int code = base::ReadEndNote(note).exit_code.value_or(0);
    if (code == 0 || std::exchange(has_told, true)) return;
    base::WriteAll(STDERR_FILENO,
                   ReportLine({.rank = identity.rank,
                               .host = base::HostName(),
                               .exit_code = code,
                               .last_lines = output.tail.lines()}));
  };
  const absl::StatusOr<support::ChildEnd> ended = support::RunChild(
      {.command = options.program,
       .environment =
           base::EnvironmentEntries(base::ProcessEnvironment(), changes),
       .own_group = true,
       .signal_on_death = SIGKILL,
       .output =
           logs ? support::Stream::kTerminal : support::Stream::kInherited,
       .errors = support::Stream::kPipe,
       .on_output =
           [&](absl::string_view text) { output.Take(STDOUT_FILENO, text); },
       .on_errors =
           [&](absl::string_view text) { output.Take(STDERR_FILENO, text); },
       .before_exec =
           [&] {
             return BindThisProcess(plan.cpus, options.plan.memory.policy,
                                    plan.memory_nodes);
           },
       .before_program =
           [&](pid_t program) {
             absl::StatusOr<GroupReaper> started =
                 GroupReaper::Start({.group = program, .launcher = launcher});
             begun = started.status();
             if (begun.ok()) {
               reaper = *std::move(started);
             } else {
               kill(program, SIGKILL);
             }
           },
       .on_signal =
           [&](int number, pid_t program) {
             tell_at_once();
             PassSignal(number, program);
           },
       .every_second =
           [&](pid_t program) {
             const int64_t now_ns = clock.NowNanos();
             const absl::Duration passed = absl::Nanoseconds(now_ns - start_ns);
             tell_at_once();
             // Errors in these reports must not stop the rank.
             base::ContainExceptions([&] { binding.Look(passed, program); });
             base::ContainExceptions([&] {
               if (cores.has_value()) cores->Look(now_ns);
               step_lines.PassOn(steps.read);
             });
           }});
  base::ContainExceptions([&] {
    step_lines.PassOn(steps.read);
    if (!cores.has_value()) return;
    for (const std::string& line : cores->Report(base::HostName())) {
      base::WriteAll(STDERR_FILENO, CoreReportLine(line));
    }
  });
  if (reaper.has_value()) reaper->Release();
  HVDLITE_RETURN_IF_ERROR(ended.status());
  const support::ChildEnd& end = *ended;
  HVDLITE_RETURN_IF_ERROR(begun);
  const base::EndNote noted = base::ReadEndNote(note);
  int code = end.exit_code;
  bool was_told = end.ended_by_signal != 0;
  // The rank was already exiting when it was told to end.
  if (noted.exit_code.value_or(0) != 0) {
    code = *noted.exit_code;
    was_told = false;
  }
  if ((code != 0 || options.in_place) && !has_told) {
    Tell({.rank = identity.rank,
          .host = base::HostName(),
          .exit_code = code,
          .was_told = was_told,
          .reason = noted.reason,
          .last_lines = output.tail.lines()});
  }
  return code;
}

// Runs one rank on its node: plans its cores, binds it, starts the program, and
// reports its end. Returns the program's exit code (128 + signal), or 1 if it
// could not be run as planned. A failure is reported on standard error to the
// user and to hvdliterun (rank_reports.h).
int RunRank(const RankIdentity& identity, const ExecRankOptions& options) {
  const absl::StatusOr<int> code = RunProgram(identity, options);
  // Open MPI (5.0.7) survives a killed process. A process that used MPI and
  // exits with an error ends or blocks the job.
  if (options.in_place && code.ok() && *code != 0) raise(SIGKILL);
  if (code.ok()) return *code;
  std::string message(code.status().message());
  if (absl::IsNotFound(code.status())) {
    absl::StrAppend(&message, ": check that this node has it at this path");
  }
  OwnLog(identity.rank).Error(message);
  Tell({.rank = identity.rank,
        .host = base::HostName(),
        .exit_code = 1,
        .was_told = false,
        .reason = "",
        .last_lines = {message}});
  return 1;
}

}  // namespace

int ExecRankMain(const std::vector<std::string>& arguments) {
  const absl::StatusOr<ExecRankOptions> options = ParseExecRank(arguments);
  if (!options.ok()) {
    std::cerr << "hvdliterun --exec-rank: " << options.status().message()
              << "\n";
    return 2;
  }
  const absl::StatusOr<RankIdentity> identity =
      IdentityOf(base::ProcessEnvironment(), options->local_size);
  if (!identity.ok()) {
    std::cerr << "hvdliterun on " << base::HostName() << ": "
              << identity.status().message() << "\n";
    return 1;
  }
  return RunRank(*identity, *options);
}

std::string LogPath(const std::string& output_dir, int rank) {
  return absl::StrCat(output_dir, "/rank.", rank, ".log");
}

}  // namespace hvdlite::launch
