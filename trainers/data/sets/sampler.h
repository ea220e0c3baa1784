// Which samples a rank processes.
#pragma once

#include <cstdint>
#include <vector>

namespace hvdlite::trainers {

struct SamplerOptions {
  int64_t dataset_size = 0;
  int64_t batch_size = 1;  // per rank
  int rank = 0;
  int world_size = 1;
  uint64_t seed = 0;
};

// Deals a dataset to the ranks, in an order that depends on seed and epoch and
// is the same on all of them. Step s of an epoch takes the next
// batch_size * world_size samples of that order, rank r the r-th batch_size of
// these; so every rank has the same number of full batches, and the samples of
// a step do not depend on how many ranks share them. What is left at the end of
// an epoch, fewer than batch_size * world_size samples, is dropped; another
// epoch drops others.
class TrainingSampler {
 public:
  // Throws InputError if the dataset is too small for a single step.
  explicit TrainingSampler(const SamplerOptions& options);

  int64_t steps_per_epoch() const { return steps_per_epoch_; }

  // This rank's samples of a step, batch_size indices into the dataset.
  std::vector<int64_t> Batch(int64_t epoch, int64_t step);

  // Those of the steps [first, last) of an epoch.
  std::vector<std::vector<int64_t>> Batches(int64_t epoch, int64_t first,
                                            int64_t last);

 private:
  void Shuffle(int64_t epoch);

  const SamplerOptions options_;
  const int64_t steps_per_epoch_;
  int64_t shuffled_epoch_ = -1;
  std::vector<int64_t> order_;  // of shuffled_epoch_
};

// This rank's share of an evaluation: batches of at most batch_size indices.
// Over all ranks every sample appears exactly once; shares may differ by one
// sample and may be empty, so their results must be summed, not averaged.
std::vector<std::vector<int64_t>> EvaluationBatches(
    const SamplerOptions& options);

// Deals the sequences of a batch to the ranks. The share of `rank`: of
// `indices`, sorted by the sequences' lengths (given in
// the same order), the ranks take turns, forward and backward, so that all have
// about as much to compute. Shares differ by one sequence at most; together
// they are the batch. The same call on every rank.
std::vector<int64_t> DealByLength(const std::vector<int64_t>& indices,
                                  const std::vector<int64_t>& lengths, int rank,
                                  int world_size);

}  // namespace hvdlite::trainers
