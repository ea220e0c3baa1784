#include "tools/hvdliterun/rank/exec_rank.h"

#include <CLI/CLI.hpp>
#include <algorithm>
#include <iostream>

#include "absl/strings/str_cat.h"
#include "base/environment.h"
#include "tools/hvdliterun/plan/surroundings.h"
#include "tools/hvdliterun/rank/rank_identity.h"
#include "tools/hvdliterun/rank/run_rank.h"
#include "tools/support/parsed_option.h"

namespace hvdlite::launch {
namespace {

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
  AddParsed(app, "--map", options.plan.domain, ParseDomain)->required();
  app.add_option("--threads", options.plan.threads);
  app.add_flag("--threads-given", options.threads_given);
  AddParsed(app, "--comm-core", options.plan.comm_core, ParseCommCore)
      ->required();
  app.add_flag("--comm-core-given", options.comm_core_given);
  AddParsed(app, "--mem", options.plan.memory, ParseMemoryPolicy)->required();
  app.add_flag("--oversubscribe", options.plan.oversubscribe);
  AddParsed(app, "--openmp", options.openmp, ParseOpenMpRuntime)->required();
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
  return options;
}

}  // namespace

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
    std::cerr << "hvdliterun --exec-rank: " << options.status().message()
              << "\n";
    return 2;
  }
  const absl::StatusOr<RankIdentity> identity =
      IdentityOf(base::ProcessEnvironment(), options->local_size);
  if (!identity.ok()) {
    std::cerr << "hvdliterun on " << HostName() << ": "
              << identity.status().message() << "\n";
    return 1;
  }
  return RunRank(*identity, *options);
}

}  // namespace hvdlite::launch
