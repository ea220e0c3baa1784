// Replaces the UCX control channel if hvdlite is built without UCX.
#include "absl/status/status.h"
#include "negotiation/channel/ucx/ucx_channel.h"

namespace hvdlite::negotiation {

absl::StatusOr<std::unique_ptr<ControlChannel>> CreateUcxChannel(
    collective::Communicator& /*bootstrap*/,
    const UcxChannelOptions& /*options*/) {
  return absl::UnavailableError("this hvdlite is built without UCX");
}

}  // namespace hvdlite::negotiation
