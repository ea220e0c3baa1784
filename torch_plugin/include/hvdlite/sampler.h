// Which samples each rank takes in each step.
#pragma once

#include <cstddef>
#include <cstdint>
#include <optional>
#include <vector>

namespace hvdlite {

enum class BatchOf { Rank, AllRanks };

// Deals the samples of a data set to the ranks: every sample of an epoch once,
// whatever worlds the epoch is gone through in.
//
//   for (int64_t epoch = sampler.epoch(); epoch < epochs; ++epoch) {
//     sampler.set_epoch(epoch);
//     while (const auto indices = sampler.next()) { ... }
//   }
//
// The order depends on seed and epoch alone. Where an epoch stands is how many
// of its samples all ranks together have taken. Of what remains then, they take
// in each step
//
//   ceil(remaining / ceil(remaining / batch)),
//
// `batch` of all ranks being their number times the batch of one, unless it is
// given for all: as few steps as there can be, all about the same. So another
// number of ranks goes on where the last has stopped. Every rank calls next()
// as often as the others; nothing is communicated. A sampler can be copied: a
// copy looks ahead, say.
class DistributedSampler {
 public:
  // The same on all ranks. Throws c10::Error if the data set is empty or the
  // batch below 1.
  DistributedSampler(int64_t dataset_size, int64_t batch_size, uint64_t seed,
                     BatchOf batch_of = BatchOf::Rank);

  // Begins this epoch, unless it is the present one: that goes on where it is,
  // or is at its end, and stays there.
  void set_epoch(int64_t epoch);

  // This rank's samples of the next step, indices below dataset_size; nothing
  // at the end of the epoch, on all ranks together. Parts of a step differ by
  // one sample at most.
  //
  // Where fewer samples than ranks are left, a rank gets an empty vector: it
  // computes nothing, but calls step() with the others (a parameter without a
  // gradient counts as zeros). A mean over the samples of all ranks is the
  // mean of the ranks' means only where their parts are equal: multiply a
  // rank's mean by indices.size() * size() / taken().
  //
  // Of the world of this moment. Throws c10::Error before init().
  std::optional<std::vector<size_t>> next();
  // Of rank `rank` among `size`: the ranks of a process set, say.
  std::optional<std::vector<size_t>> next(int rank, int size);

  int64_t epoch() const { return epoch_; }
  // How many samples of the epoch the ranks have taken, all together, and in
  // the last step.
  int64_t position() const { return position_; }
  int64_t taken() const { return taken_; }
  int64_t dataset_size() const { return dataset_size_; }
  // What all ranks of the world of this moment take in a step at most.
  int64_t samples_per_step() const;

  // Goes on in an epoch after `position` samples of it. Throws c10::Error where
  // there are not as many.
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
  std::vector<size_t> order_;  // of shuffled_epoch_
};

}  // namespace hvdlite
