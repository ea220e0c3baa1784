// Steps that have to succeed on every rank.
#pragma once

#include <string>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/types/span.h"
#include "collective/communicator.h"

namespace hvdlite::collective {

// "rank 3 (host)", or "rank 3" where `host_of_rank` is empty.
std::string DescribeRank(int rank, absl::Span<const std::string> host_of_rank);

// Collective. Returns the values of all ranks, in rank order, if every rank
// passes one. If any rank passes an error, all ranks get Unavailable, which
// names the lowest such rank and repeats its message. Errors of `communicator`
// are returned as they are.
absl::StatusOr<std::vector<std::string>> GatherOrFail(
    Communicator& communicator, const absl::StatusOr<std::string>& mine,
    absl::Span<const std::string> host_of_rank = {});

// The same of a status: OK if it is so on every rank.
absl::Status AgreeOn(Communicator& communicator, const absl::Status& status,
                     absl::Span<const std::string> host_of_rank = {});

}  // namespace hvdlite::collective
