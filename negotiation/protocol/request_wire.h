// Requests and sets of ranks as they travel.
#pragma once

#include "absl/status/statusor.h"
#include "negotiation/protocol/messages.pb.h"
#include "negotiation/protocol/rank_list.h"
#include "negotiation/protocol/request.h"

namespace hvdlite::negotiation {

void ToWire(const Request& request, wire::Request* message);

// Errors: InvalidArgument for values that this version does not know.
absl::StatusOr<Request> FromWire(const wire::Request& message);

void ToWire(const RankRuns& ranks, wire::Ranks* message);
// Without what is no rank of a world of this size.
RankRuns FromWire(const wire::Ranks& message, int world_size);

}  // namespace hvdlite::negotiation
