#include <torch/types.h>

#include <memory>
#include <numeric>
#include <vector>

#include "trainers/data/sets/dataset.h"
#include "trainers/data/sets/patterns.h"
#include "trainers/synthetic/tasks.h"

namespace hvdlite::trainers {
namespace {

// Batches of a dataset, in order, again and again; a new epoch augments the
// images anew.
class BatchLoader {
 public:
  BatchLoader(ImageSet images, int64_t batch_size, uint64_t seed)
      : dataset_(std::move(images), seed),
        indices_(static_cast<size_t>(batch_size)) {}

  Batch Next() {
    if (first_ + std::ssize(indices_) > dataset_.size()) {
      first_ = 0;
      ++epoch_;
    }
    std::iota(indices_.begin(), indices_.end(), first_);
    first_ += std::ssize(indices_);
    return dataset_.Load(indices_, epoch_);
  }

 private:
  ImageDataset dataset_;
  std::vector<int64_t> indices_;
  int64_t first_ = 0;
  int64_t epoch_ = 0;
};

constexpr int64_t kBatches = 16;  // in memory

}  // namespace

SyntheticTask MakeImageLoadingTask(const SyntheticTaskOptions& options) {
  const auto loader = std::make_shared<BatchLoader>(
      MakePatternImages(kBatches * options.batch_size, options.seed),
      options.batch_size, options.seed);
  return {.model = nullptr, .loss = [loader] {
            loader->Next();
            return torch::zeros({});
          }};
}

}  // namespace hvdlite::trainers
