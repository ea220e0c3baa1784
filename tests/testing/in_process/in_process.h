// Fake transports: communicators and control channels whose ranks are threads
// of one process.
#pragma once

#include <memory>
#include <vector>

#include "absl/status/statusor.h"
#include "collective/communicator.h"
#include "negotiation/channel/control_channel.h"

namespace hvdlite::collective {

// Returns one communicator per rank. They share one world; each may be used by
// another thread. Reduces in rank order: ((r0 + r1) + r2) + ... Detects ranks
// that call different operations, and arguments that differ or do not match.
// The last rank to arrive does the work on its thread; the others sleep. If a
// rank's communicator is destroyed while others need it, the world breaks for
// all (Unavailable). Subgroups are worlds of their own.
std::vector<std::unique_ptr<Communicator>> CreateInProcessWorld(int size);

}  // namespace hvdlite::collective

namespace hvdlite::negotiation {

// Returns one channel per rank; each wakes its owner through an eventfd.
// Errors: ResourceExhausted if there are no descriptors left.
absl::StatusOr<std::vector<std::unique_ptr<ControlChannel>>>
CreateInProcessChannels(int size);

}  // namespace hvdlite::negotiation
