#include "tools/scaling_sweep/run/launch_plan.h"

#include <algorithm>
#include <utility>

#include "absl/strings/ascii.h"
#include "absl/strings/match.h"
#include "absl/strings/numbers.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "absl/strings/str_split.h"
#include "absl/strings/strip.h"

namespace hvdlite::scaling_sweep {
namespace {

// As hvdliterun names the sources of what nobody has asked for.
constexpr absl::string_view kOwnSources[] = {" default", " cores of the rank",
                                             " ranks share cores"};

// "  local rank 0: CPUs 0-1, 2 threads, coordinator none, memory local".
void ReadRank(absl::string_view line, LaunchPlan& plan) {
  for (absl::string_view part : absl::StrSplit(line, ", ")) {
    if (part == "OVERSUBSCRIBED") plan.oversubscribed = true;
    int threads = 0;
    if ((absl::ConsumeSuffix(&part, " threads") ||
         absl::ConsumeSuffix(&part, " thread")) &&
        absl::SimpleAtoi(part, &threads)) {
      plan.threads = std::max(plan.threads, threads);
    }
  }
}

// "  NAME=VALUE       source".
void ReadVariable(absl::string_view line, LaunchPlan& plan) {
  for (const absl::string_view source : kOwnSources) {
    absl::string_view setting = line;
    if (!absl::ConsumeSuffix(&setting, source)) continue;
    const std::pair<std::string, std::string> sides = absl::StrSplit(
        absl::StripAsciiWhitespace(setting), absl::MaxSplits('=', 1));
    // Ranks have cores of their own: the first one's stand for all.
    if (std::none_of(
            plan.defaults.begin(), plan.defaults.end(),
            [&](const auto& known) { return known.first == sides.first; })) {
      plan.defaults.push_back(sides);
    }
    return;
  }
}

// "- each node sets OPENBLAS_CORETYPE if ...; here: Haswell".
void ReadNote(absl::string_view line, LaunchPlan& plan) {
  constexpr absl::string_view kHere = "; here: ";
  const size_t here = line.rfind(kHere);
  if (!absl::StartsWith(line, "- each node sets OPENBLAS_CORETYPE ") ||
      here == absl::string_view::npos) {
    return;
  }
  plan.defaults.emplace_back("OPENBLAS_CORETYPE",
                             std::string(line.substr(here + kHere.size())));
}

constexpr char kThreads[] = "OMP_NUM_THREADS";

// Of a list for nested regions the first; 0 if it is no number.
int FirstNumber(const std::string& text) {
  int number = 0;
  return absl::SimpleAtoi(text.substr(0, text.find(',')), &number)
             ? std::max(0, number)
             : 0;
}

constexpr char kOpenBlas[] = "OPENBLAS_CORETYPE";

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
  question.words.insert(question.words.begin() + 1,
                        {"--dry-run", "--oversubscribe"});
  return question;
}

int PlannedHosts(absl::string_view text) {
  for (absl::string_view line : absl::StrSplit(text, '\n')) {
    if (!absl::ConsumePrefix(&line, "ranks: ")) continue;
    // "2 on 1 host (this host)".
    const std::vector<absl::string_view> words = absl::StrSplit(line, ' ');
    int hosts = 0;
    if (words.size() > 3 && words[1] == "on" &&
        absl::StartsWith(words[3], "host") &&
        absl::SimpleAtoi(words[2], &hosts)) {
      return hosts;
    }
  }
  return 0;
}

absl::StatusOr<LaunchPlan> ParseLaunchPlan(absl::string_view text) {
  LaunchPlan plan;
  bool in_environment = false;
  for (absl::string_view line : absl::StrSplit(text, '\n')) {
    if (absl::StrContains(line, "environment of ") &&
        absl::EndsWith(line, ":")) {
      in_environment = true;
    } else if (!absl::StartsWith(line, "  ")) {
      in_environment = false;
      ReadNote(line, plan);
      if (absl::ConsumePrefix(&line, "OpenMP: "))
        plan.openmp = std::string(line);
    } else if (absl::StartsWith(line, "  local rank ")) {
      ReadRank(line, plan);
    } else if (in_environment) {
      ReadVariable(line, plan);
    }
  }
  if (plan.threads > 0) return plan;
  return absl::InvalidArgumentError("it does not say a rank's threads");
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
