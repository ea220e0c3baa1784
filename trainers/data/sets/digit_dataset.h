// A dataset of handwritten digits in memory.
#pragma once

#include "trainers/data/formats/digit_set.h"
#include "trainers/data/sets/dataset.h"

namespace hvdlite::trainers {

// Images of one channel, normalised by the mean and deviation of MNIST's.
class DigitDataset : public Dataset {
 public:
  explicit DigitDataset(DigitSet digits);

  int64_t size() const override { return digits_.size(); }
  Batch Load(const std::vector<int64_t>& indices, int64_t epoch) override;

 private:
  const DigitSet digits_;
};

}  // namespace hvdlite::trainers
