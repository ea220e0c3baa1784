// Fakes of transports: communicators and control channels whose ranks are
// threads of one process.
#pragma once

#include <memory>
#include <vector>

#include "absl/status/statusor.h"
#include "collective/communicator.h"
#include "negotiation/channel/control_channel.h"

namespace hvdlite::collective {

// One communicator per rank, sharing one world; each may be used by another
// thread. Reduces in rank order: ((r0 + r1) + r2) + ... Detects ranks that call
// different operations, and arguments that differ or do not fit together. The
// last rank to arrive does the work on its thread; the others sleep. Destroying
// a rank's communicator while others wait for it, or before they call something
// that needs it, breaks the world for all (Unavailable). Subgroups are worlds
// of their own.
std::vector<std::unique_ptr<Communicator>> CreateInProcessWorld(int size);

}  // namespace hvdlite::collective

namespace hvdlite::negotiation {

// One channel per rank; each wakes its owner through an eventfd. Errors:
// ResourceExhausted when there are no more descriptors.
absl::StatusOr<std::vector<std::unique_ptr<ControlChannel>>>
CreateInProcessChannels(int size);

}  // namespace hvdlite::negotiation
