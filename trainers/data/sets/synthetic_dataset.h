// A dataset that costs nothing to load.
#pragma once

#include "trainers/data/sets/dataset.h"

namespace hvdlite::trainers {

struct SyntheticOptions {
  int64_t size = 0;        // images, as far as samplers are concerned
  int64_t batch_size = 1;  // largest batch that Load is asked for
  int64_t image_side = 224;
  int64_t classes = 1000;
  uint64_t seed = 0;
};

// One random batch, drawn when the dataset is made, that Load returns (or the
// start of it) for whatever indices: for measuring speed.
class SyntheticDataset : public Dataset {
 public:
  explicit SyntheticDataset(const SyntheticOptions& options);

  int64_t size() const override { return size_; }
  Batch Load(const std::vector<int64_t>& indices, int64_t epoch) override;

 private:
  const int64_t size_;
  Batch batch_;
};

}  // namespace hvdlite::trainers
