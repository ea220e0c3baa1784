// The control channel over UCX active messages, which sleeps on a descriptor.
#pragma once

#include <memory>
#include <string>
#include <vector>

#include "absl/status/statusor.h"
#include "absl/time/time.h"
#include "absl/types/span.h"
#include "base/environment.h"
#include "collective/communicator.h"
#include "negotiation/channel/control_channel.h"

namespace hvdlite::negotiation {

struct UcxChannelOptions {
  // The ranks that this one exchanges messages with, as its neighbours in the
  // tree: of two neighbours each names the other. Each is connected and
  // exchanges a message before the channel counts as made, so that a network
  // that does not carry UCX is found out in time; and its death is noticed from
  // then on. No other rank can be reached.
  std::vector<int> neighbours;
  absl::Duration connect_timeout = absl::Seconds(30);

  // Per rank, for messages; may be empty. Not needed afterwards.
  absl::Span<const std::string> host_of_rank;

  // As UCX_TLS. Not UCX's own shared memory: it does not tell reliably when a
  // process dies, and connects processes that cannot share memory.
  std::string transports = "^sm";

  // Every variable of UCX counts, as UCX_TLS or, for this channel alone, as
  // HVDLITE_UCX_TLS; it wins over the above.
  base::Environment environment = base::ProcessEnvironment();
};

// Collective over `bootstrap`, which carries the addresses, from neighbour to
// neighbour, and is not used any more afterwards. Either all ranks get a
// channel, or all get the same error (Unavailable, naming a rank that could not
// take part, and why): then another channel can be used instead. A rank without
// neighbours gets null, and makes nothing of UCX. The others hold as much as
// they have neighbours, whatever the size of the world.
//
// When a process dies, its neighbours get Unavailable, naming it, from
// TryReceive once they have taken what had arrived; Send to the others goes on
// working, so that they can be told.
//
// Every message carries a number that rank 0 draws for this channel. What
// arrives without it, as from another job that was given a stale address, is
// dropped, and warned of once.
//
// Destroyed when all ranks have received what they need. Sends what is left,
// but for two seconds at most.
absl::StatusOr<std::unique_ptr<ControlChannel>> CreateUcxChannel(
    collective::Communicator& bootstrap, const UcxChannelOptions& options);

}  // namespace hvdlite::negotiation
