// A dataset of images in memory.
#pragma once

#include <optional>

#include "trainers/data/formats/image_set.h"
#include "trainers/data/sets/dataset.h"

namespace hvdlite::trainers {

// Normalised images; augmented too if there is an augmentation seed. A sample
// of an epoch looks the same on whatever rank and in whatever batch.
class ImageDataset : public Dataset {
 public:
  ImageDataset(ImageSet images, std::optional<uint64_t> augmentation_seed);

  int64_t size() const override { return images_.size(); }
  Batch Load(const std::vector<int64_t>& indices, int64_t epoch) override;

 private:
  const ImageSet images_;
  const std::optional<uint64_t> augmentation_seed_;
};

}  // namespace hvdlite::trainers
