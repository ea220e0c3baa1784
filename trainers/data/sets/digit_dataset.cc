#include "trainers/data/sets/digit_dataset.h"

#include <utility>

namespace hvdlite::trainers {
namespace {

// Of the training images, of pixels from 0 to 1.
constexpr float kMean = 0.1307F;
constexpr float kDeviation = 0.3081F;

}  // namespace

DigitDataset::DigitDataset(DigitSet digits) : digits_(std::move(digits)) {}

Batch DigitDataset::Load(const std::vector<int64_t>& indices,
                         int64_t /*epoch*/) {
  const auto count = static_cast<int64_t>(indices.size());
  Batch batch = {
      torch::empty({count, 1, kDigitSide, kDigitSide}),
      torch::empty({count}, torch::kInt64),
  };
  float* pixel = batch.images.data_ptr<float>();
  int64_t* label = batch.labels.data_ptr<int64_t>();
  for (const int64_t index : indices) {
    const uint8_t* image = digits_.image(index);
    for (int64_t i = 0; i < kDigitBytes; ++i) {
      *pixel++ = (static_cast<float>(image[i]) / 255 - kMean) / kDeviation;
    }
    *label++ = digits_.labels[static_cast<size_t>(index)];
  }
  return batch;
}

}  // namespace hvdlite::trainers
