// Requests as they travel.
#pragma once

#include "absl/status/statusor.h"
#include "negotiation/messages.pb.h"
#include "negotiation/request.h"

namespace hvdlite::negotiation {

void ToWire(const Request& request, wire::Request* message);

// Errors: InvalidArgument for values that this version does not know.
absl::StatusOr<Request> FromWire(const wire::Request& message);

}  // namespace hvdlite::negotiation
