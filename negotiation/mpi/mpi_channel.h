// The control channel over MPI point-to-point messages.
#pragma once

#include <memory>

#include "absl/status/statusor.h"
#include "negotiation/control_channel.h"

namespace hvdlite::negotiation {

// Over a duplicate of MPI_COMM_WORLD. Collective. MPI must be initialised, and
// stay so until the channel is gone. Has no descriptor: it is polled.
absl::StatusOr<std::unique_ptr<ControlChannel>> CreateMpiChannel();

}  // namespace hvdlite::negotiation
