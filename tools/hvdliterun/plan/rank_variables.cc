#include "tools/hvdliterun/plan/rank_variables.h"

#include <string>

#include "absl/strings/str_cat.h"

namespace hvdlite::launch {
namespace {

constexpr char kPlan[] = "cores of the rank";

}  // namespace

std::string OwnArrangement(OpenMpRuntime openmp, const Variables& variables) {
  if (openmp != OpenMpRuntime::kLlvm && openmp != OpenMpRuntime::kIntel &&
      variables.Has("GOMP_CPU_AFFINITY")) {
    return "GOMP_CPU_AFFINITY";
  }
  if (openmp != OpenMpRuntime::kGnu && variables.Has("KMP_AFFINITY")) {
    return "KMP_AFFINITY";
  }
  return "";
}

void AddRankVariables(const Machine& machine, const RankPlan& plan,
                      const RankChoices& choices, Variables& variables) {
  const std::string threads = absl::StrCat(plan.threads);
  if (choices.threads_given) {
    variables.Set("OMP_NUM_THREADS", threads, "--threads");
  } else {
    variables.Offer("OMP_NUM_THREADS", threads, kPlan);
  }
  const std::string own = OwnArrangement(choices.openmp, variables);
  if (!own.empty()) {
    variables.Note(absl::StrCat(own, "=", variables.Get(own).value_or(""),
                                " arranges the threads: OMP_PROC_BIND and "
                                "OMP_PLACES are left alone"));
  } else if (plan.oversubscribed) {
    variables.Offer("OMP_PROC_BIND", "false", "ranks share cores");
  } else {
    variables.Offer("OMP_PROC_BIND", "close", "default");
    variables.Offer("OMP_PLACES", OpenMpPlaces(machine, plan), kPlan);
  }
  const std::optional<int> cpu = CoordinatorCpu(machine, plan);
  const std::string core = cpu.has_value() ? absl::StrCat(*cpu) : "none";
  if (choices.comm_core_given) {
    variables.Set("HVDLITE_COORDINATOR_CORE", core, "--comm-core");
  } else {
    variables.Offer("HVDLITE_COORDINATOR_CORE", core, kPlan);
  }
}

}  // namespace hvdlite::launch
