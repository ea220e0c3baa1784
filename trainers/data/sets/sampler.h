// The share of a rank: samples of an evaluation, and sequences of a batch.
#pragma once

#include <cstdint>
#include <vector>

namespace hvdlite::trainers {

struct SamplerOptions {
  int64_t dataset_size = 0;
  int64_t batch_size = 1;  // per rank
  int rank = 0;
  int world_size = 1;
};

// Returns this rank's share of an evaluation: batches of at most batch_size
// indices. Over all ranks every sample appears exactly once. Shares may differ
// by one sample and may be empty, so sum their results instead of averaging.
std::vector<std::vector<int64_t>> EvaluationBatches(
    const SamplerOptions& options);

// Deals the sequences of a batch to the ranks. The share of `rank`: of
// `indices`, sorted by the sequences' lengths (given in
// the same order; equal ones keep it), the ranks take turns, forward and
// backward, so that all have about as much to compute. Shares differ by one
// sequence at most; together they are the batch. The same call on every rank.
std::vector<int64_t> DealByLength(const std::vector<int64_t>& indices,
                                  const std::vector<int64_t>& lengths, int rank,
                                  int world_size);

}  // namespace hvdlite::trainers
