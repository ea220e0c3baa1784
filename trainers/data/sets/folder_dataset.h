// A dataset of image files.
#pragma once

#include <cstdint>
#include <optional>
#include <vector>

#include "trainers/data/sets/dataset.h"
#include "trainers/data/sets/image_folder.h"

namespace hvdlite::trainers {

// Reads files when they are asked for, and transforms them to squares of
// `image_side` pixels: for training if there is an augmentation seed, otherwise
// for evaluation. A sample of an epoch looks the same on whatever rank and in
// whatever batch.
class FolderDataset : public Dataset {
 public:
  FolderDataset(std::vector<LabelledFile> files, int64_t image_side,
                std::optional<uint64_t> augmentation_seed);

  int64_t size() const override { return static_cast<int64_t>(files_.size()); }

  // Throws InputError, naming the file, for one that cannot be decoded.
  Batch Load(const std::vector<int64_t>& indices, int64_t epoch) override;

 private:
  const std::vector<LabelledFile> files_;
  const int64_t image_side_;
  const std::optional<uint64_t> augmentation_seed_;
};

}  // namespace hvdlite::trainers
