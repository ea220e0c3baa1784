// What carries the bytes of this world.
#pragma once

#include <memory>
#include <string>
#include <vector>

#include "absl/status/status.h"
#include "collective/communicator.h"
#include "collective/topology.h"
#include "torch_plugin/include/hvdlite/config.h"

namespace hvdlite::internal {

// Makes of `communicator`, a flat one over all ranks, what `config` asks for:
// adds in rank order, shares memory inside the nodes. Collective; all ranks
// agree about `config`. Appends to `warnings`, the same on every rank, what
// could not be had; what cannot be had later on is logged then. Errors, the
// same on every rank: InvalidArgument for a table of algorithms that cannot be
// read; otherwise the transport's.
absl::Status ChooseDataPlane(
    const Config& config, const collective::Topology& topology,
    std::unique_ptr<collective::Communicator>& communicator,
    std::vector<std::string>& warnings);

}  // namespace hvdlite::internal
