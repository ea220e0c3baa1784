// The CPU that this process's coordinator gets.
#pragma once

#include <optional>
#include <string>

#include "absl/status/statusor.h"
#include "base/logging.h"
#include "collective/communicator.h"
#include "collective/topology.h"

namespace hvdlite::internal {

struct CoordinatorCpu {
  std::optional<int> of_its_own;
  bool oversubscribed = false;  // as IsOversubscribed
};

// As Config::coordinator_core asks for it. Collective, since the ranks of a
// host share its cores; `choice` may differ by rank. Logs what was chosen, and
// why.
absl::StatusOr<CoordinatorCpu> ChooseCoordinatorCpu(
    const std::string& choice, collective::Communicator& communicator,
    const collective::Topology& topology, const base::Logger& logger);

}  // namespace hvdlite::internal
