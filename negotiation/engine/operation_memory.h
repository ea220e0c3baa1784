// Checks of an operation that need no other rank.
#pragma once

#include "absl/status/status.h"
#include "negotiation/engine/operation.h"

namespace hvdlite::negotiation {

// InvalidArgument unless the operation has a name, and inputs and outputs as
// Operation's comment says for its request. A request with a refusal needs
// none.
absl::Status CheckMemory(const Operation& operation);

// InvalidArgument unless the outputs of a reducescatter that passed CheckMemory
// take the share of member number `place` of `members`.
absl::Status CheckShare(const Operation& operation, int members, int place);

}  // namespace hvdlite::negotiation
