// What carries the control messages of this world.
#pragma once

#include <memory>
#include <string>
#include <vector>

#include "absl/status/statusor.h"
#include "collective/communicator.h"
#include "collective/topology.h"
#include "negotiation/channel/control_channel.h"
#include "torch_plugin/include/hvdlite/config.h"

namespace hvdlite::internal {

// Collective over `flat`, on which all ranks agree about `config`; it is not
// needed afterwards. Carries messages between neighbours in the tree of the
// channel's layout(): shared memory inside the nodes, and between their leaders
// what `config` asks for (auto: UCX, or MPI where UCX cannot be had). Where the
// ranks of a node cannot share memory, every rank is a node of its own. Appends
// to `warnings`, the same on every rank, what could not be had. Errors:
// Unavailable, on every rank, where UCX is asked for and cannot be had;
// otherwise the transport's.
absl::StatusOr<std::unique_ptr<negotiation::ControlChannel>>
ChooseControlChannel(const Config& config, const collective::Topology& topology,
                     collective::Communicator& flat,
                     std::vector<std::string>& warnings);

}  // namespace hvdlite::internal
