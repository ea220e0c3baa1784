#include "trainers/data/sets/folder_dataset.h"

#include <algorithm>
#include <utility>

#include "trainers/data/formats/image_file.h"
#include "trainers/data/sets/random.h"
#include "trainers/data/transforms/image_transforms.h"

namespace hvdlite::trainers {

FolderDataset::FolderDataset(std::vector<LabelledFile> files,
                             int64_t image_side,
                             std::optional<uint64_t> augmentation_seed)
    : files_(std::move(files)),
      image_side_(image_side),
      augmentation_seed_(augmentation_seed) {}

Batch FolderDataset::Load(const std::vector<int64_t>& indices, int64_t epoch) {
  const auto count = static_cast<int64_t>(indices.size());
  Batch batch = {
      torch::empty({count, 3, image_side_, image_side_}),
      torch::empty({count}, torch::kInt64),
  };
  float* images = batch.images.data_ptr<float>();
  int64_t* labels = batch.labels.data_ptr<int64_t>();
  for (const int64_t index : indices) {
    const LabelledFile& file = files_[index];
    const RgbImage image = ReadImageFile(file.path);
    const auto transform = [&] {
      if (!augmentation_seed_)
        return TransformForEvaluation(image, image_side_);
      const KeyedRandom random{*augmentation_seed_,
                               static_cast<uint64_t>(epoch),
                               static_cast<uint64_t>(index)};
      return TransformForTraining(
          image, ImageAugmentation::Draw(image.width, image.height, random),
          image_side_);
    };
    const PlanarImage planes = transform();
    images = std::copy(planes.values.begin(), planes.values.end(), images);
    *labels++ = file.label;
  }
  return batch;
}

}  // namespace hvdlite::trainers
