// DistributedSampler: which samples each rank takes in each step.
#pragma once

#include <cstddef>
#include <cstdint>
#include <optional>
#include <vector>

namespace hvdlite {

// Whether a batch size is that of one rank or of all ranks together.
enum class BatchOf { Rank, AllRanks };

// Distributes the samples of a data set to the ranks: every sample of an epoch
// once, also if the number of ranks changes during the epoch.
//
//   for (int64_t epoch = sampler.epoch(); epoch < epochs; ++epoch) {
//     sampler.set_epoch(epoch);
//     while (const auto indices = sampler.next()) { ... }
//   }
//
// The order depends only on seed and epoch. The position in an epoch is the
// number of samples that all ranks together have taken. In each step they take
//
//   ceil(remaining / ceil(remaining / batch))
//
// samples of the remaining ones. `batch` is the mini-batch of all ranks: the
// mini-batch of one rank times their number, unless it is given for all ranks.
// So an epoch has as few steps as possible, of nearly equal size, and another
// number of ranks can continue at the same position. Every rank calls next()
// equally often; nothing is communicated. A sampler can be copied, for example
// to look ahead.
class DistributedSampler {
 public:
  // The arguments are the same on all ranks. Throws c10::Error if
  // `dataset_size` or `batch_size` is below 1.
  DistributedSampler(int64_t dataset_size, int64_t batch_size, uint64_t seed,
                     BatchOf batch_of = BatchOf::Rank);

  // Begins `epoch`. If it is already the present epoch, the position does not
  // change, also at the end of the epoch.
  void set_epoch(int64_t epoch);

  // Returns this rank's samples of the next step: indices below dataset_size.
  // At the end of the epoch all ranks get nullopt. The ranks' shares of a step
  // differ by one sample at most.
  //
  // If fewer samples than ranks remain, some ranks get an empty vector. Such a
  // rank computes nothing, but calls step() like the others (its gradients
  // count as zeros). If the shares differ, the mean over all samples is not the
  // mean of the ranks' means. To get it, multiply each rank's mean by
  //
  //   indices.size() * size() / taken().
  //
  // Uses rank() and size() of the current world. Throws c10::Error before
  // init().
  std::optional<std::vector<size_t>> next();
  // The same for rank `rank` of `size` ranks, for example of a process set.
  std::optional<std::vector<size_t>> next(int rank, int size);

  int64_t epoch() const { return epoch_; }
  // How many samples all ranks together have taken in this epoch (position) and
  // in the last step (taken).
  int64_t position() const { return position_; }
  int64_t taken() const { return taken_; }
  int64_t dataset_size() const { return dataset_size_; }
  // The most samples that all ranks of the current world take in one step.
  int64_t samples_per_step() const;

  // Continues `epoch` after its first `position` samples. Throws c10::Error if
  // the data set has fewer samples.
  void resume(int64_t epoch, int64_t position);

 private:
  int64_t dataset_size_;
  int64_t batch_size_;
  uint64_t seed_;
  BatchOf batch_of_;
  int64_t epoch_ = 0;
  int64_t position_ = 0;
  int64_t taken_ = 0;
  int64_t shuffled_epoch_ = -1;
  std::vector<size_t> order_;  // the order of shuffled_epoch_
};

}  // namespace hvdlite
