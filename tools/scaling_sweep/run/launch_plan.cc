#include "tools/scaling_sweep/run/launch_plan.h"

#include <algorithm>
#include <iterator>
#include <nlohmann/json.hpp>
#include <utility>

#include "absl/strings/match.h"
#include "absl/strings/numbers.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "absl/strings/str_split.h"

namespace hvdlite::scaling_sweep {
namespace {

using nlohmann::json;

constexpr char kOpenBlas[] = "OPENBLAS_CORETYPE";

// hvdliterun's names for the sources of settings that the user did not choose.
constexpr absl::string_view kOwnSources[] = {"default", "cores of the rank",
                                             "ranks share cores"};

// Returns the variables that the user did not choose. Ranks have different
// cores; the values of the first rank represent all.
void ReadVariables(const json& environment, LaunchPlan& plan) {
  for (const json& variable : environment) {
    const std::string source = variable.at("source");
    if (std::count(std::begin(kOwnSources), std::end(kOwnSources), source) ==
        0) {
      continue;
    }
    const std::string name = variable.at("name");
    if (std::none_of(plan.defaults.begin(), plan.defaults.end(),
                     [&](const auto& known) { return known.first == name; })) {
      plan.defaults.emplace_back(name, variable.at("value").get<std::string>());
    }
  }
}

LaunchPlan ReadAnswer(const json& told) {
  LaunchPlan plan = {.openmp = told.at("openmp"), .defaults = {}};
  ReadVariables(told.at("environment"), plan);
  for (const json& hosts : told.at("hosts")) {
    plan.hosts += static_cast<int>(hosts.at("names").size());
    if (!hosts.at("planned").get<bool>()) continue;
    for (const json& rank : hosts.at("ranks")) {
      plan.threads = std::max(plan.threads, rank.at("threads").get<int>());
      plan.oversubscribed =
          plan.oversubscribed || rank.at("oversubscribed").get<bool>();
      ReadVariables(rank.at("environment"), plan);
    }
  }
  const std::string core = told.at("openblas_core_here");
  if (!core.empty()) plan.defaults.emplace_back(kOpenBlas, core);
  return plan;
}

constexpr char kThreads[] = "OMP_NUM_THREADS";

// Returns the first number of a list for nested regions; 0 if it is no number.
int FirstNumber(const std::string& text) {
  int number = 0;
  return absl::SimpleAtoi(text.substr(0, text.find(',')), &number)
             ? std::max(0, number)
             : 0;
}

bool Has(const Variables& variables, const std::string& name) {
  return std::any_of(variables.begin(), variables.end(),
                     [&](const auto& entry) { return entry.first == name; });
}

bool DoesNothing(const std::pair<std::string, std::string>& variable) {
  return variable == std::pair<std::string, std::string>(
                         "HVDLITE_COORDINATOR_CORE", "none");
}

}  // namespace

Command DryRunOf(const Command& command) {
  Command question = command;
  question.arguments.insert(question.arguments.begin() + 1,
                            {"--dry-run=json", "--oversubscribe"});
  return question;
}

// The answer is one line; environment modules, for example, may print others.
std::optional<LaunchPlan> ParseLaunchPlan(absl::string_view text) {
  for (const absl::string_view line : absl::StrSplit(text, '\n')) {
    if (!absl::StartsWith(line, "{")) continue;
    try {
      const json told = json::parse(line.begin(), line.end());
      if (told.at("format") == 1) return ReadAnswer(told);
    } catch (const json::exception&) {
      continue;  // another program's line, or the launcher is not hvdliterun
    }
  }
  return std::nullopt;
}

int ThreadsBySettings(const Configuration& configuration,
                      const base::Environment& environment) {
  if (configuration.threads > 0) return configuration.threads;
  std::optional<std::string> text = environment.get(kThreads);
  for (const auto& [name, value] : configuration.environment) {
    if (name == kThreads) text = value;
  }
  return FirstNumber(text.value_or(""));
}

bool IsOversubscribed(int ranks_per_node, int threads, int asked,
                      const std::optional<LaunchPlan>& plan,
                      const Processors& node) {
  if (plan && plan->oversubscribed) return true;
  if (plan && plan->threads == threads && threads != asked) return false;
  const bool has_cores = threads <= 1 || threads == asked;
  return ranks_per_node * std::max(1, threads) >
         (has_cores ? node.cores : node.cpus);
}

std::vector<LauncherDefault> LauncherDefaults(const LaunchPlan& plan) {
  const std::pair<const char*, std::vector<std::string>> groups[] = {
      {"OpenBLAS kernels", {kOpenBlas}},
      {"malloc", {"MALLOC_MMAP_MAX_", "MALLOC_TRIM_THRESHOLD_"}},
      {"threads", {"OMP_NUM_THREADS"}},
      {"thread binding", {"OMP_PROC_BIND", "OMP_PLACES"}},
      {"coordinator core", {"HVDLITE_COORDINATOR_CORE"}}};
  std::vector<LauncherDefault> all;
  for (const auto& [name, variables] : groups) {
    LauncherDefault group = {.name = name, .variables = {}};
    for (const auto& variable : plan.defaults) {
      const bool belongs =
          std::count(variables.begin(), variables.end(), variable.first) > 0;
      if (belongs && !DoesNothing(variable)) {
        group.variables.push_back(variable);
      }
    }
    if (!group.variables.empty()) all.push_back(std::move(group));
  }
  return all;
}

Ablation AblationOf(const LaunchPlan& plan, const LauncherDefault& taken_away) {
  Ablation ablation;
  for (const auto& [name, value] : taken_away.variables) {
    ablation.unset.push_back(name);
  }
  constexpr const char* kRuntimes[] = {"libgomp", "libomp", "libiomp5",
                                       "libfjomp"};
  if (std::count(std::begin(kRuntimes), std::end(kRuntimes), plan.openmp) > 0) {
    ablation.launcher_flags = {"--openmp", plan.openmp};
  }
  for (const auto& [name, value] : plan.defaults) {
    if (name == kOpenBlas && !Has(taken_away.variables, name)) {
      ablation.launcher_flags.insert(ablation.launcher_flags.end(),
                                     {"--set", absl::StrCat(name, "=", value)});
    }
  }
  return ablation;
}

std::string Describe(const LauncherDefault& launcher_default) {
  return absl::StrCat(
      launcher_default.name, " (",
      absl::StrJoin(launcher_default.variables, " ", absl::PairFormatter("=")),
      ")");
}

}  // namespace hvdlite::scaling_sweep
