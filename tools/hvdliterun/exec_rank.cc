#include "tools/hvdliterun/exec_rank.h"

#include <fcntl.h>
#include <signal.h>
#include <unistd.h>

#include <CLI/CLI.hpp>
#include <cerrno>
#include <cstring>
#include <filesystem>
#include <system_error>
#include <utility>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_split.h"
#include "base/descriptor.h"
#include "base/environment.h"
#include "base/status_macros.h"
#include "tools/hvdliterun/binding.h"
#include "tools/hvdliterun/child_process.h"
#include "tools/hvdliterun/group_reaper.h"
#include "tools/hvdliterun/openblas_core.h"
#include "tools/hvdliterun/rank_identity.h"
#include "tools/hvdliterun/rank_reports.h"
#include "tools/hvdliterun/rank_variables.h"

namespace hvdlite::launch {
namespace {

constexpr size_t kLastLines = 20;

std::string HostName() {
  char name[256] = {};
  if (gethostname(name, sizeof(name) - 1) != 0) return "?";
  return name;
}

void Complain(absl::string_view what, absl::string_view text) {
  WriteAll(STDERR_FILENO, absl::StrCat("hvdliterun: ", what, ": ", text, "\n"));
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

// The machine that the ranks of this host share, and which of them this is.
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

// Checks the program that has just started, and sees to it that its children
// end with this process.
absl::Status Guard(pid_t program, std::optional<pid_t> launcher,
                   const RankPlan& plan, std::optional<GroupReaper>& reaper) {
  HVDLITE_RETURN_IF_ERROR(CheckCpusOf(program, plan.cpus));
  absl::StatusOr<GroupReaper> started =
      GroupReaper::Start({.group = program, .launcher = launcher});
  HVDLITE_RETURN_IF_ERROR(started.status());
  reaper = *std::move(started);
  return absl::OkStatus();
}

absl::StatusOr<int> RunRank(const RankIdentity& identity,
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
  std::optional<GroupReaper> reaper;
  absl::Status started;
  HVDLITE_ASSIGN_OR_RETURN(
      const ChildEnd end,
      RunChild({.command = options.program,
                .environment = WithVariables(base::ProcessEnvironment(),
                                             variables.changes()),
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
                      started = Guard(program, launcher, plan, reaper);
                      if (!started.ok()) kill(program, SIGKILL);
                    }}));
  if (reaper.has_value()) reaper->Release();
  HVDLITE_RETURN_IF_ERROR(started);
  const int code = ExitCode(end.status);
  if (code != 0) {
    WriteAll(STDERR_FILENO, ReportLine({.rank = identity.rank,
                                        .host = HostName(),
                                        .exit_code = code,
                                        .was_told = end.ended_by_signal != 0,
                                        .last_lines = output.tail.lines()}));
  }
  return code;
}

struct Texts {
  std::string map;
  std::string comm_core;
  std::string memory;
  std::string openmp;
};

// The program's words follow a "--".
absl::StatusOr<ExecRankOptions> Parse(
    const std::vector<std::string>& arguments) {
  ExecRankOptions options;
  const auto end = std::find(arguments.begin(), arguments.end(), "--");
  if (end == arguments.end() || end + 1 == arguments.end()) {
    return absl::InvalidArgumentError("there is no program after '--'");
  }
  options.program.assign(end + 1, arguments.end());
  std::vector<std::string> own(arguments.begin(), end);
  std::reverse(own.begin(), own.end());  // as CLI11 wants them

  CLI::App app("", "hvdliterun --exec-rank");
  Texts texts;
  app.add_option("--map", texts.map)->required();
  app.add_option("--threads", options.plan.threads);
  app.add_flag("--threads-given", options.threads_given);
  app.add_option("--comm-core", texts.comm_core)->required();
  app.add_flag("--comm-core-given", options.comm_core_given);
  app.add_option("--mem", texts.memory)->required();
  app.add_flag("--oversubscribe", options.plan.oversubscribe);
  app.add_option("--openmp", texts.openmp)->required();
  app.add_option("--local-size", options.local_size);
  app.add_flag("--bound-by-launcher", options.bound_by_launcher);
  app.add_option("--openblas", options.openblas);
  app.add_option("--output-dir", options.output_dir);
  app.add_option("--env", options.settings)->allow_extra_args(false);
  try {
    app.parse(own);
  } catch (const CLI::ParseError& error) {
    return absl::InvalidArgumentError(error.what());
  }
  HVDLITE_ASSIGN_OR_RETURN(options.plan.domain, ParseDomain(texts.map));
  HVDLITE_ASSIGN_OR_RETURN(options.plan.comm_core,
                           ParseCommCore(texts.comm_core));
  HVDLITE_ASSIGN_OR_RETURN(options.plan.memory,
                           ParseMemoryPolicy(texts.memory));
  HVDLITE_ASSIGN_OR_RETURN(options.openmp, ParseOpenMpRuntime(texts.openmp));
  return options;
}

}  // namespace

std::string LogPath(const std::string& output_dir, int rank) {
  return absl::StrCat(output_dir, "/rank.", rank, ".log");
}

std::vector<std::string> ExecRankCommand(const std::string& self,
                                         const ExecRankOptions& options) {
  std::vector<std::string> words = {self, "--exec-rank"};
  const auto add = [&](const char* flag, absl::string_view value) {
    words.insert(words.end(), {flag, std::string(value)});
  };
  add("--map", DomainName(options.plan.domain));
  if (options.plan.threads.has_value()) {
    add("--threads", absl::StrCat(*options.plan.threads));
  }
  if (options.threads_given) words.emplace_back("--threads-given");
  add("--comm-core", CommCoreText(options.plan.comm_core));
  if (options.comm_core_given) words.emplace_back("--comm-core-given");
  add("--mem", MemoryPolicyName(options.plan.memory));
  if (options.plan.oversubscribe) words.emplace_back("--oversubscribe");
  add("--openmp", OpenMpRuntimeName(options.openmp));
  if (options.local_size.has_value()) {
    add("--local-size", absl::StrCat(*options.local_size));
  }
  if (options.bound_by_launcher) words.emplace_back("--bound-by-launcher");
  if (!options.openblas.empty()) add("--openblas", options.openblas);
  if (!options.output_dir.empty()) add("--output-dir", options.output_dir);
  for (const std::string& setting : options.settings) add("--env", setting);
  words.emplace_back("--");
  words.insert(words.end(), options.program.begin(), options.program.end());
  return words;
}

int ExecRankMain(const std::vector<std::string>& arguments) {
  const absl::StatusOr<ExecRankOptions> options = Parse(arguments);
  if (!options.ok()) {
    Complain("--exec-rank", options.status().message());
    return 2;
  }
  const absl::StatusOr<RankIdentity> identity =
      IdentityOf(base::ProcessEnvironment(), options->local_size);
  if (!identity.ok()) {
    Complain(HostName(), identity.status().message());
    return 1;
  }
  const absl::StatusOr<int> code = RunRank(*identity, *options);
  if (code.ok()) return *code;
  const std::string host = HostName();
  Complain(absl::StrCat("rank ", identity->rank, " on ", host),
           code.status().message());
  WriteAll(STDERR_FILENO,
           ReportLine({.rank = identity->rank,
                       .host = host,
                       .exit_code = 1,
                       .was_told = false,
                       .last_lines = {std::string(code.status().message())}}));
  return 1;
}

}  // namespace hvdlite::launch
