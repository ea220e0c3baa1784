#include "tools/hvdliterun/rank/rank_identity.h"

#include <array>
#include <string>
#include <vector>

#include "absl/strings/numbers.h"
#include "absl/strings/str_cat.h"
#include "base/status_macros.h"
#include "tools/hvdliterun/plan/slurm_list.h"

namespace hvdlite::launch {
namespace {

// The variables of one launcher; "" for what it does not tell.
struct Names {
  const char* rank;
  const char* local_rank;
  const char* local_size;
};

constexpr std::array kNames = {
    Names{"OMPI_COMM_WORLD_RANK", "OMPI_COMM_WORLD_LOCAL_RANK",
          "OMPI_COMM_WORLD_LOCAL_SIZE"},
    Names{"PMI_RANK", "MPI_LOCALRANKID", "MPI_LOCALNRANKS"},
    Names{"PMI_RANK", "PMI_LOCAL_RANK", "PMI_LOCAL_SIZE"},
    Names{"PALS_RANKID", "PALS_LOCAL_RANKID", "PALS_LOCAL_SIZE"},
    Names{"PMIX_RANK", "PLE_RANK_ON_NODE", ""},
    Names{"SLURM_PROCID", "SLURM_LOCALID", ""},
};

std::optional<int> Number(const base::Environment& environment,
                          const std::string& name) {
  const std::optional<std::string> text = environment.get(name);
  int number = 0;
  if (!text.has_value() || !absl::SimpleAtoi(*text, &number) || number < 0) {
    return std::nullopt;
  }
  return number;
}

// Tasks of this node in SLURM's step.
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

absl::StatusOr<RankIdentity> IdentityOf(const base::Environment& environment,
                                        std::optional<int> local_size) {
  for (const Names& names : kNames) {
    const std::optional<int> rank = Number(environment, names.rank);
    const std::optional<int> local_rank = Number(environment, names.local_rank);
    if (!rank.has_value() || !local_rank.has_value()) continue;
    std::optional<int> size = Number(environment, names.local_size);
    if (!size.has_value() && names.rank == std::string("SLURM_PROCID")) {
      size = SlurmLocalSize(environment);
    }
    if (!size.has_value()) size = local_size;
    if (size.has_value() && *local_rank >= *size) {
      return absl::FailedPreconditionError(absl::StrCat(
          names.rank, "=", *rank, " is number ", *local_rank, " (",
          names.local_rank, ", from 0) of its host, which has ", *size,
          " ranks: the launcher's variables contradict each other; unset those "
          "of a job around this one"));
    }
    return RankIdentity{
        .rank = *rank, .local_rank = *local_rank, .local_size = size};
  }
  return absl::FailedPreconditionError(
      "no launcher says which rank this is (OMPI_COMM_WORLD_RANK, PMI_RANK "
      "with MPI_LOCALRANKID or PMI_LOCAL_RANK, PALS_RANKID, PMIX_RANK with "
      "PLE_RANK_ON_NODE, SLURM_PROCID): --exec-rank is for hvdliterun itself");
}

}  // namespace hvdlite::launch
