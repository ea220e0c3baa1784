// Which rank a process is, from what its launcher tells it.
#pragma once

#include <optional>

#include "absl/status/statusor.h"
#include "base/environment.h"

namespace hvdlite::launch {

struct RankIdentity {
  int rank = 0;
  int local_rank = 0;
  std::optional<int> local_size;  // ranks of this host; none: nobody tells
};

// From the variables of Open MPI, Hydra, PALS (Cray), Fujitsu's MPI or SLURM,
// in this order: a launcher may have been started inside a SLURM task.
// `local_size` is used where the launcher does not tell it.
// FailedPrecondition: no launcher tells the rank, or its variables contradict
// each other.
absl::StatusOr<RankIdentity> IdentityOf(const base::Environment& environment,
                                        std::optional<int> local_size);

}  // namespace hvdlite::launch
