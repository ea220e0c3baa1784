// The control channel between the ranks of one node, through shared memory.
#pragma once

#include <cstddef>
#include <memory>
#include <string>
#include <vector>

#include "absl/status/statusor.h"
#include "collective/communicator.h"
#include "negotiation/channel/control_channel.h"

namespace hvdlite::negotiation {

struct ShmChannelOptions {
  // Names of the node's ranks for messages, such as "rank 7 (host)". Default:
  // "rank 3", counted within the node.
  std::vector<std::string> rank_names = {};
  // Cells of the ring from one rank to another: a power of two, at least 4. A
  // cell holds 56 bytes; a longer message takes several cells.
  size_t cells_per_ring = 64;
};

// Creates the channel; collective over the ranks of one node. Either all ranks
// get a channel, or all get Unavailable with the reason of the lowest rank that
// failed. `node` is not needed afterwards. Every rank uses a few hundred KB of
// memory at most, and two descriptors for each other rank.
//
// To wake a sleeping rank, a sender writes one byte into a pipe; a rank that is
// awake needs no signal. So a message takes well below a microsecond between
// two ranks that are both awake. Nothing is polled: after PrepareToSleep, the
// descriptors report every event.
//
// If the process of another rank ends while the channel exists, TryReceive
// returns Unavailable once, which names that rank. Before this it returns all
// messages of that rank, and then nullopt. So a receiver that shuts down
// because of those messages does not see the error. The channel still carries
// messages between the other ranks.
absl::StatusOr<std::unique_ptr<ControlChannel>> CreateShmChannel(
    collective::Communicator& node, const ShmChannelOptions& options = {});

}  // namespace hvdlite::negotiation
