// The control channel over MPI point-to-point messages.
#pragma once

#include <memory>

#include "absl/status/statusor.h"
#include "absl/types/span.h"
#include "negotiation/channel/control_channel.h"

namespace hvdlite::negotiation {

// Between `members`, ranks of MPI_COMM_WORLD in ascending order, which is
// duplicated where there are none: between all. Collective over them; a rank
// that is not among them gets null at once. They keep their numbers. MPI must
// be initialised, and stay so until the channel is gone. Has no descriptor: it
// is polled.
absl::StatusOr<std::unique_ptr<ControlChannel>> CreateMpiChannel(
    absl::Span<const int> members = {});

}  // namespace hvdlite::negotiation
