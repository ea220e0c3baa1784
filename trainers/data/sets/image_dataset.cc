#include "trainers/data/sets/image_dataset.h"

#include <utility>

#include "trainers/data/transforms/augmentation.h"

namespace hvdlite::trainers {

ImageDataset::ImageDataset(ImageSet images,
                           std::optional<uint64_t> augmentation_seed)
    : images_(std::move(images)), augmentation_seed_(augmentation_seed) {}

Batch ImageDataset::Load(const std::vector<int64_t>& indices, int64_t epoch) {
  const auto count = static_cast<int64_t>(indices.size());
  Batch batch = {
      torch::empty({count, kImageChannels, kImageSide, kImageSide}),
      torch::empty({count}, torch::kInt64),
  };
  float* images = batch.images.data_ptr<float>();
  int64_t* labels = batch.labels.data_ptr<int64_t>();
  for (const int64_t index : indices) {
    const Augmentation augmentation =
        augmentation_seed_
            ? Augmentation::Draw(*augmentation_seed_, epoch, index)
            : Augmentation{};
    AugmentAndNormalise(images_.image(index), augmentation, images);
    images += kImageBytes;
    *labels++ = images_.labels[index];
  }
  return batch;
}

}  // namespace hvdlite::trainers
