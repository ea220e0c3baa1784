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
  // What to call the ranks of the node in messages ("rank 7 (host)"); by
  // default "rank 3", counted within the node.
  std::vector<std::string> rank_names = {};
  // Between any two ranks, in each direction: a power of two from 4 on. A cell
  // holds 56 bytes; longer messages are passed on piece by piece.
  size_t cells_per_ring = 64;
};

// Collective over the ranks of one node: either all get a channel or, on every
// rank, Unavailable with the reason of the lowest rank that has one. `node` is
// not needed afterwards. Every rank uses a few hundred KB of memory at most,
// and two descriptors for each other rank.
//
// Nothing is sent to a sleeping rank but one byte through a pipe, and nothing
// at all to one that is awake, so that a message takes well below a microsecond
// between two that look at once. Nothing is polled: the descriptors tell of
// everything after PrepareToSleep.
//
// When the process of another rank ends while the channel exists, TryReceive
// returns Unavailable, naming it, once: after everything that it has sent, and
// after having returned nullopt. So who finds a reason to end in that peer's
// last messages does not hear of its end. The channel goes on carrying messages
// between the other ranks.
absl::StatusOr<std::unique_ptr<ControlChannel>> CreateShmChannel(
    collective::Communicator& node, const ShmChannelOptions& options = {});

}  // namespace hvdlite::negotiation
