// Control channels whose ranks are threads of one process.
#pragma once

#include <memory>
#include <vector>

#include "absl/status/statusor.h"
#include "negotiation/channel/control_channel.h"

namespace hvdlite::negotiation {

// One channel per rank; each wakes its owner through an eventfd. Errors:
// ResourceExhausted when there are no more descriptors.
absl::StatusOr<std::vector<std::unique_ptr<ControlChannel>>>
CreateInProcessChannels(int size);

}  // namespace hvdlite::negotiation
