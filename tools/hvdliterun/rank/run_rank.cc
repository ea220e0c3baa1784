#include "tools/hvdliterun/rank/run_rank.h"

#include <fcntl.h>
#include <signal.h>
#include <sys/ioctl.h>
#include <unistd.h>

#include <cerrno>
#include <cstring>
#include <filesystem>
#include <optional>
#include <system_error>
#include <utility>
#include <vector>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_split.h"
#include "absl/time/clock.h"
#include "absl/time/time.h"
#include "base/descriptor.h"
#include "base/environment.h"
#include "base/status_macros.h"
#include "tools/hvdliterun/launch/rank_reports.h"
#include "tools/hvdliterun/plan/rank_variables.h"
#include "tools/hvdliterun/plan/surroundings.h"
#include "tools/hvdliterun/rank/binding.h"
#include "tools/hvdliterun/rank/rank_guard.h"
#include "tools/support/child_process.h"
#include "tools/support/openblas_core.h"

namespace hvdlite::launch {
namespace {

constexpr size_t kLastLines = 20;

void Complain(const RankIdentity& identity, absl::string_view text) {
  WriteAll(STDERR_FILENO, absl::StrCat("hvdliterun: rank ", identity.rank,
                                       " on ", HostName(), ": ", text, "\n"));
}

absl::StatusOr<base::Descriptor> OpenLog(const std::string& folder, int rank) {
  std::error_code error;
  std::filesystem::create_directories(folder, error);
  const std::string path = LogPath(folder, rank);
  base::Descriptor log(
      open(path.c_str(), O_WRONLY | O_CREAT | O_TRUNC | O_CLOEXEC, 0666));
  if (!log.valid()) {
    return absl::PermissionDeniedError(
        absl::StrCat("cannot write ", path, ": ", std::strerror(errno)));
  }
  return log;
}

// The rank's share of its host: all that the launcher has left it, or its part
// of what all ranks of the host plan alike.
absl::StatusOr<RankPlan> PlanOf(const Machine& machine,
                                const RankIdentity& identity,
                                const ExecRankOptions& options) {
  PlanOptions plan = options.plan;
  if (options.bound_by_launcher) {
    plan.domain = Domain::kNode;
    HVDLITE_ASSIGN_OR_RETURN(const std::vector<RankPlan> own,
                             PlanHost(machine, 1, plan));
    return own.front();
  }
  if (!identity.local_size.has_value()) {
    return absl::FailedPreconditionError(
        "the launcher does not say how many ranks this host has, which may "
        "differ between hosts: start equally many on each (-np)");
  }
  HVDLITE_ASSIGN_OR_RETURN(const std::vector<RankPlan> plans,
                           PlanHost(machine, *identity.local_size, plan));
  return plans[static_cast<size_t>(identity.local_rank)];
}

Variables VariablesOf(const Machine& machine, const RankPlan& plan,
                      const ExecRankOptions& options) {
  Variables variables(base::ProcessEnvironment());
  for (const std::string& setting : options.settings) {
    const std::pair<std::string, std::string> sides =
        absl::StrSplit(setting, absl::MaxSplits('=', 1));
    variables.Set(sides.first, sides.second, "hvdliterun");
  }
  AddRankVariables(machine, plan,
                   {.openmp = options.openmp,
                    .threads_given = options.threads_given,
                    .comm_core_given = options.comm_core_given},
                   variables);
  if (!options.openblas.empty() && !variables.Has("OPENBLAS_CORETYPE")) {
    const std::string core = BetterOpenBlasCoreHere(options.openblas);
    if (!core.empty()) variables.Set("OPENBLAS_CORETYPE", core, "default");
  }
  return variables;
}

// Where the rank's output goes, and what is kept of it.
struct Output {
  OutputTail tail{kLastLines};
  base::Descriptor log;
  bool shown = true;  // on this process's own streams too

  void Take(int descriptor, absl::string_view text) {
    tail.Take(text);
    if (log.valid()) WriteAll(log.get(), text);
    if (shown) WriteAll(descriptor, text);
  }
};

// Tells hvdliterun by standard error, through the launcher. srun ends a job,
// and what it has not passed on by then, when it learns of the first rank's
// end: so this returns once the text has been read, and a moment later.
void Tell(const RankFailure& failure) {
  constexpr absl::Duration kToRead = absl::Seconds(1);
  constexpr absl::Duration kToSend = absl::Milliseconds(100);
  WriteAll(STDERR_FILENO, ReportLine(failure));
  if (failure.was_told) return;  // the job is ending
  const absl::Time until = absl::Now() + kToRead;
  int unread = 0;
  while (ioctl(STDERR_FILENO, FIONREAD, &unread) == 0 && unread > 0 &&
         absl::Now() < until) {
    absl::SleepFor(absl::Milliseconds(1));
  }
  absl::SleepFor(kToSend);
}

absl::StatusOr<int> RunProgram(const RankIdentity& identity,
                               const ExecRankOptions& options) {
  HVDLITE_ASSIGN_OR_RETURN(const Machine machine, ThisMachine());
  HVDLITE_ASSIGN_OR_RETURN(const RankPlan plan,
                           PlanOf(machine, identity, options));
  const Variables variables = VariablesOf(machine, plan, options);

  Output output;
  const bool logs = !options.output_dir.empty();
  if (logs) {
    HVDLITE_ASSIGN_OR_RETURN(output.log,
                             OpenLog(options.output_dir, identity.rank));
    output.shown = identity.rank == 0;
  }
  // Whether the parent of a rank stays under Fujitsu's mpiexec is not known.
  const std::optional<pid_t> launcher =
      options.bound_by_launcher ? std::nullopt : std::optional(getppid());
  RankGuard guard(plan, variables, OwnArrangement(options.openmp, variables),
                  [&](absl::string_view text) { Complain(identity, text); });
  absl::Status begun;
  HVDLITE_ASSIGN_OR_RETURN(
      const ChildEnd end,
      RunChild({.command = options.program,
                .environment = base::EnvironmentEntries(
                    base::ProcessEnvironment(), PairsOf(variables.changes())),
                .own_group = true,
                .signal_on_death = SIGKILL,
                .output = logs ? Stream::kTerminal : Stream::kInherited,
                .errors = Stream::kPipe,
                .on_output =
                    [&](absl::string_view text) {
                      output.Take(STDOUT_FILENO, text);
                    },
                .on_errors =
                    [&](absl::string_view text) {
                      output.Take(STDERR_FILENO, text);
                    },
                .before_exec =
                    [&] {
                      return BindThisProcess(plan.cpus, options.plan.memory,
                                             plan.memory_nodes);
                    },
                .on_started =
                    [&](pid_t program) {
                      begun = guard.Begin(program, launcher);
                      if (!begun.ok()) kill(program, SIGKILL);
                    }}));
  guard.End();
  HVDLITE_RETURN_IF_ERROR(begun);
  const int code = end.exit_code;
  if (code != 0) {
    Tell({.rank = identity.rank,
          .host = HostName(),
          .exit_code = code,
          .was_told = end.ended_by_signal != 0,
          .last_lines = output.tail.lines()});
  }
  return code;
}

}  // namespace

int RunRank(const RankIdentity& identity, const ExecRankOptions& options) {
  const absl::StatusOr<int> code = RunProgram(identity, options);
  if (code.ok()) return *code;
  std::string message(code.status().message());
  if (absl::IsNotFound(code.status())) {
    absl::StrAppend(&message, ": is it on this node, by the same path?");
  }
  Complain(identity, message);
  Tell({.rank = identity.rank,
        .host = HostName(),
        .exit_code = 1,
        .was_told = false,
        .last_lines = {message}});
  return 1;
}

std::string LogPath(const std::string& output_dir, int rank) {
  return absl::StrCat(output_dir, "/rank.", rank, ".log");
}

}  // namespace hvdlite::launch
