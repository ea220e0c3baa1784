// GatherOrFail: every rank gets what every rank has, or every rank an error.
#pragma once

#include <string>
#include <vector>

#include "absl/status/statusor.h"
#include "absl/types/span.h"
#include "collective/communicator.h"

namespace hvdlite::negotiation {

// "rank 3 (host)", or "rank 3" where `host_of_rank` is empty.
std::string DescribeRank(int rank, absl::Span<const std::string> host_of_rank);

// Collective. Returns the values of all ranks, in rank order, if every rank
// passes one. If any rank passes an error, all ranks get Unavailable, which
// names the lowest such rank and repeats its message. Errors of `communicator`
// are returned as they are.
absl::StatusOr<std::vector<std::string>> GatherOrFail(
    collective::Communicator& communicator,
    const absl::StatusOr<std::string>& mine,
    absl::Span<const std::string> host_of_rank);

}  // namespace hvdlite::negotiation
