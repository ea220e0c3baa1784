// The control channel over UCX active messages. Its threads can sleep on a
// descriptor.
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
  // The ranks that this rank exchanges messages with: its neighbours in the
  // tree. If A names B, then B names A. The channel is made only after each
  // pair has connected and exchanged a message. So a network that does not
  // carry UCX is detected in time. From then on, the death of a neighbour is
  // detected. No other rank can be reached.
  std::vector<int> neighbours;
  absl::Duration connect_timeout = absl::Seconds(30);

  // The host of each rank, for messages; may be empty. Not needed afterwards.
  absl::Span<const std::string> host_of_rank;

  // UCX's transports, in the syntax of UCX_TLS. UCX's own shared memory is
  // excluded: it does not reliably report the death of a process, and it
  // connects processes that cannot share memory.
  std::string transports = "^sm";

  // All variables of UCX are used, as UCX_TLS or, for this channel only, as
  // HVDLITE_UCX_TLS. They override `transports`.
  base::Environment environment = base::ProcessEnvironment();
};

// Creates the channel; collective over `bootstrap`. Neighbours exchange their
// addresses through `bootstrap`, which is not used afterwards. Either all ranks
// get a channel, or all get the same error: Unavailable, which names a rank
// that could not take part, and the reason. Then another channel can be used
// instead. A rank without neighbours gets null and does not initialise UCX. The
// memory per rank grows with its neighbours, not with the world.
//
// If a process dies, TryReceive of its neighbours returns Unavailable, which
// names it, once they have taken all messages that had arrived. Send to other
// ranks still works, so that they can be informed.
//
// Every message carries a number that rank 0 draws for this channel. A message
// without this number is dropped: it comes, for example, from another job with
// a stale address. The first one causes a warning.
//
// Destroy the channel when all ranks have received what they need. The
// destructor sends the rest, for at most two seconds.
absl::StatusOr<std::unique_ptr<ControlChannel>> CreateUcxChannel(
    collective::Communicator& bootstrap, const UcxChannelOptions& options);

}  // namespace hvdlite::negotiation
