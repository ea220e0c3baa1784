// Fakes of transports: communicators and control channels whose ranks are
// threads of one process.
#pragma once

#include <memory>
#include <vector>

#include "absl/status/statusor.h"
#include "absl/time/time.h"
#include "collective/communicator.h"
#include "negotiation/channel/control_channel.h"

namespace hvdlite::collective {

struct InProcessOptions {
  // How long an operation waits for the other ranks; zero: not at all, so that
  // all but the last rank to call fail at once.
  absl::Duration deadline = absl::InfiniteDuration();
};

// One communicator per rank, sharing one world; each may be used by another
// thread. Reduces in rank order: ((r0 + r1) + r2) + ... Detects ranks that call
// different operations, and arguments that differ or do not fit together. The
// last rank to arrive does the work on its thread; the others sleep. Destroying
// a rank's communicator while others wait for it, or before they call something
// that needs it, breaks the world for all (Unavailable). Subgroups are worlds
// of their own with the same options.
std::vector<std::unique_ptr<Communicator>> CreateInProcessWorld(
    int size, InProcessOptions options = {});

}  // namespace hvdlite::collective

namespace hvdlite::negotiation {

// One channel per rank; each wakes its owner through an eventfd. Errors:
// ResourceExhausted when there are no more descriptors.
absl::StatusOr<std::vector<std::unique_ptr<ControlChannel>>>
CreateInProcessChannels(int size);

}  // namespace hvdlite::negotiation
