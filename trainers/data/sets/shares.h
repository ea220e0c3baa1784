// Dealing the sequences of a batch to the ranks.
#pragma once

#include <cstdint>
#include <vector>

namespace hvdlite::trainers {

// The share of `rank`: of `indices`, sorted by the sequences' lengths (given in
// the same order), the ranks take turns, forward and backward, so that all have
// about as much to compute. Shares differ by one sequence at most; together
// they are the batch. The same call on every rank.
std::vector<int64_t> DealByLength(const std::vector<int64_t>& indices,
                                  const std::vector<int64_t>& lengths, int rank,
                                  int world_size);

}  // namespace hvdlite::trainers
