#include "tools/hvdliterun/rank/rank_command.h"

#include <CLI/CLI.hpp>
#include <algorithm>
#include <utility>

#include "absl/strings/numbers.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "absl/strings/string_view.h"
#include "base/launcher_environment.h"
#include "support/flags.h"
#include "support/openmp.h"
#include "tools/hvdliterun/plan/slurm_list.h"

namespace hvdlite::launch {
namespace {

std::optional<int> Number(const base::Environment& environment,
                          absl::string_view name) {
  const std::optional<std::string> text = environment.get(name);
  int number = 0;
  if (!text.has_value() || !absl::SimpleAtoi(*text, &number) || number < 0) {
    return std::nullopt;
  }
  return number;
}

// The number of tasks of SLURM's step on this node.
std::optional<int> SlurmLocalSize(const base::Environment& environment) {
  const std::optional<int> node = Number(environment, "SLURM_NODEID");
  const std::optional<std::string> tasks =
      environment.get("SLURM_STEP_TASKS_PER_NODE");
  if (!node.has_value() || !tasks.has_value()) return std::nullopt;
  const absl::StatusOr<std::vector<int>> counts = ExpandCounts(*tasks);
  if (!counts.ok() || static_cast<size_t>(*node) >= counts->size()) {
    return std::nullopt;
  }
  return (*counts)[static_cast<size_t>(*node)];
}

}  // namespace

std::vector<std::string> ExecRankCommand(const std::string& self,
                                         const ExecRankOptions& options) {
  std::vector<std::string> command = {self, "--exec-rank"};
  const auto add = [&](const char* flag, absl::string_view value) {
    command.insert(command.end(), {flag, std::string(value)});
  };
  add("--map", DomainName(options.plan.domain));
  if (options.plan.threads.has_value()) {
    add("--threads", absl::StrCat(*options.plan.threads));
  }
  if (options.choices.threads_given) command.emplace_back("--threads-given");
  add("--comm-core", CommCoreText(options.plan.comm_core));
  if (options.choices.comm_core_given)
    command.emplace_back("--comm-core-given");
  add("--mem", MemoryText(options.plan.memory));
  if (options.plan.oversubscribe) command.emplace_back("--oversubscribe");
  add("--openmp", support::OpenMpRuntimeName(options.choices.openmp));
  if (options.local_size.has_value()) {
    add("--local-size", absl::StrCat(*options.local_size));
  }
  if (options.bound_by_launcher) command.emplace_back("--bound-by-launcher");
  if (!options.openblas.empty()) add("--openblas", options.openblas);
  if (!options.output_dir.empty()) add("--output-dir", options.output_dir);
  if (options.report) command.push_back("--report");
  if (options.terminal) command.push_back("--terminal");
  if (options.in_place) command.push_back("--in-place");
  for (const std::string& setting : options.settings) add("--env", setting);
  command.emplace_back("--");
  command.insert(command.end(), options.program.begin(), options.program.end());
  return command;
}

absl::StatusOr<ExecRankOptions> ParseExecRank(
    const std::vector<std::string>& arguments) {
  ExecRankOptions options;
  // The program and its arguments follow "--".
  const auto end = std::find(arguments.begin(), arguments.end(), "--");
  if (end == arguments.end() || end + 1 == arguments.end()) {
    return absl::InvalidArgumentError("there is no program after '--'");
  }
  options.program.assign(end + 1, arguments.end());
  std::vector<std::string> own(arguments.begin(), end);
  std::reverse(own.begin(), own.end());  // the order that CLI11 needs

  CLI::App app("", "hvdliterun --exec-rank");
  support::AddParsed(app, "--map", options.plan.domain, ParseDomain)
      ->required();
  app.add_option("--threads", options.plan.threads);
  app.add_flag("--threads-given", options.choices.threads_given);
  support::AddParsed(app, "--comm-core", options.plan.comm_core, ParseCommCore)
      ->required();
  app.add_flag("--comm-core-given", options.choices.comm_core_given);
  support::AddParsed(app, "--mem", options.plan.memory, ParseMemory)
      ->required();
  app.add_flag("--oversubscribe", options.plan.oversubscribe);
  support::AddParsed(app, "--openmp", options.choices.openmp,
                     support::ParseOpenMpRuntime)
      ->required();
  app.add_option("--local-size", options.local_size);
  app.add_flag("--bound-by-launcher", options.bound_by_launcher);
  app.add_option("--openblas", options.openblas);
  app.add_option("--output-dir", options.output_dir);
  app.add_flag("--report", options.report);
  app.add_flag("--terminal", options.terminal);
  app.add_flag("--in-place", options.in_place);
  app.add_option("--env", options.settings)->allow_extra_args(false);
  try {
    app.parse(own);
  } catch (const CLI::ParseError& error) {
    return absl::InvalidArgumentError(error.what());
  }
  return options;
}

absl::StatusOr<RankIdentity> IdentityOf(const base::Environment& environment,
                                        std::optional<int> local_size) {
  for (const base::LauncherVariables& names : base::AllLauncherVariables()) {
    const std::optional<int> rank = Number(environment, names.rank);
    const std::optional<int> local_rank = Number(environment, names.local_rank);
    if (!rank.has_value() || !local_rank.has_value()) continue;
    std::optional<int> size = Number(environment, names.local_size);
    if (!size.has_value() && names.launcher == "SLURM") {
      size = SlurmLocalSize(environment);
    }
    if (!size.has_value()) size = local_size;
    if (size.has_value() && *local_rank >= *size) {
      return absl::FailedPreconditionError(absl::StrCat(
          names.rank, "=", *rank, " has the local rank ", *local_rank, " (",
          names.local_rank, "), but its host has only ", *size,
          " ranks: the launcher's variables contradict each other; unset those "
          "of an outer job"));
    }
    return RankIdentity{
        .rank = *rank, .local_rank = *local_rank, .local_size = size};
  }
  return absl::FailedPreconditionError(absl::StrCat(
      "no launcher variables give the rank of this process (",
      absl::StrJoin(base::AllLauncherVariables(), ", ",
                    [](std::string* out, const base::LauncherVariables& names) {
                      absl::StrAppend(out, names.rank, " with ",
                                      names.local_rank);
                    }),
      "): only hvdliterun itself uses --exec-rank"));
}

}  // namespace hvdlite::launch
