#include "tools/scaling_sweep/run/launcher_default.h"

#include <algorithm>
#include <utility>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"

namespace hvdlite::scaling_sweep {
namespace {

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
