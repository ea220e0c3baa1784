// The control channel over UCX active messages, which sleeps on a descriptor.
#pragma once

#include <memory>
#include <string>
#include <vector>

#include "absl/status/statusor.h"
#include "absl/time/time.h"
#include "base/environment.h"
#include "collective/communicator.h"
#include "negotiation/control_channel.h"

namespace hvdlite::negotiation {

struct UcxChannelOptions {
  // Ranks that this one will talk to in any case, as its neighbours in the
  // tree. Each is connected and exchanges a message before the channel counts
  // as made, so that a network that does not carry UCX is found out in time;
  // and its death is noticed from then on. It suffices that one of two names
  // the other. Any other rank is connected with the first message to or from
  // it.
  std::vector<int> neighbours;
  absl::Duration connect_timeout = absl::Seconds(30);

  // Per rank, for messages; may be empty.
  std::vector<std::string> host_of_rank;

  // As UCX_TLS. Not UCX's own shared memory: it does not tell reliably when a
  // process dies, and connects processes that cannot share memory.
  std::string transports = "^sm";

  // Every variable of UCX counts, as UCX_TLS or, for this channel alone, as
  // HVDLITE_UCX_TLS; it wins over the above.
  base::Environment environment = base::ProcessEnvironment();
};

// Collective over `bootstrap`, which carries the addresses and is not used any
// more afterwards. Either all ranks get a channel, or all get the same error
// (Unavailable, naming a rank that could not take part, and why): then another
// channel can be used instead.
//
// When a process dies, ranks that are connected to it get Unavailable, naming
// it, from TryReceive once they have taken what had arrived; Send to the others
// goes on working, so that they can be told.
//
// Destroyed when all ranks have received what they need. Sends what is left,
// but for two seconds at most.
absl::StatusOr<std::unique_ptr<ControlChannel>> CreateUcxChannel(
    collective::Communicator& bootstrap, const UcxChannelOptions& options);

}  // namespace hvdlite::negotiation
