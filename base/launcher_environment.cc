#include "base/launcher_environment.h"

#include <algorithm>

#include "absl/strings/numbers.h"

namespace hvdlite::base {

const std::vector<LauncherVariables>& AllLauncherVariables() {
  static const auto* const all = new std::vector<LauncherVariables>{
      {.launcher = "Open MPI",
       .rank = "OMPI_COMM_WORLD_RANK",
       .size = "OMPI_COMM_WORLD_SIZE",
       .local_rank = "OMPI_COMM_WORLD_LOCAL_RANK",
       .local_size = "OMPI_COMM_WORLD_LOCAL_SIZE"},
      // MPICH, Intel MPI, MVAPICH.
      {.launcher = "Hydra",
       .rank = "PMI_RANK",
       .size = "PMI_SIZE",
       .local_rank = "MPI_LOCALRANKID",
       .local_size = "MPI_LOCALNRANKS"},
      {.launcher = "Cray's PMI",
       .rank = "PMI_RANK",
       .size = "PMI_SIZE",
       .local_rank = "PMI_LOCAL_RANK",
       .local_size = "PMI_LOCAL_SIZE"},
      {.launcher = "Cray's PALS",
       .rank = "PALS_RANKID",
       .size = "",
       .local_rank = "PALS_LOCAL_RANKID",
       .local_size = "PALS_LOCAL_SIZE"},
      // Also any launcher that uses PMIx, as far as ranks are concerned.
      {.launcher = "Fujitsu's MPI",
       .rank = "PMIX_RANK",
       .size = "",
       .local_rank = "PLE_RANK_ON_NODE",
       .local_size = ""},
      {.launcher = "SLURM",
       .rank = "SLURM_PROCID",
       .size = "SLURM_STEP_NUM_TASKS",
       .local_rank = "SLURM_LOCALID",
       .local_size = ""},
  };
  return *all;
}

bool IsLaunched(const Environment& environment) {
  const auto& all = AllLauncherVariables();
  return std::any_of(all.begin(), all.end(),
                     [&](const LauncherVariables& launcher) {
                       return environment.get(launcher.rank).has_value() ||
                              environment.get(launcher.size).has_value();
                     });
}

bool IsFirstOfLauncher(const Environment& environment) {
  const auto& all = AllLauncherVariables();
  return std::all_of(
      all.begin(), all.end(), [&](const LauncherVariables& launcher) {
        return environment.get(launcher.rank).value_or("0") == "0";
      });
}

std::optional<int64_t> RankOfLauncher(const Environment& environment) {
  for (const LauncherVariables& launcher : AllLauncherVariables()) {
    const std::optional<std::string> text = environment.get(launcher.rank);
    int64_t rank = 0;
    if (text.has_value() && absl::SimpleAtoi(*text, &rank) && rank >= 0) {
      return rank;
    }
  }
  return std::nullopt;
}

std::optional<PromisedRanks> SeveralRanksPromised(
    const Environment& environment) {
  for (const LauncherVariables& launcher : AllLauncherVariables()) {
    if (launcher.size.empty()) continue;
    const std::optional<std::string> text = environment.get(launcher.size);
    int64_t count = 0;
    if (text.has_value() && absl::SimpleAtoi(*text, &count) && count > 1) {
      return PromisedRanks{.count = count,
                           .variable = std::string(launcher.size)};
    }
  }
  return std::nullopt;
}

}  // namespace hvdlite::base
