#include "trainers/data/sets/dataset.h"

#include <ATen/CPUGeneratorImpl.h>
#include <torch/types.h>

#include <algorithm>
#include <utility>

#include "base/keyed_random.h"
#include "support/input_error.h"
#include "trainers/data/formats/image_file.h"

namespace hvdlite::trainers {
namespace {

// Mean and deviation of MNIST's training images, for pixels from 0 to 1.
constexpr float kDigitMean = 0.1307F;
constexpr float kDigitDeviation = 0.3081F;

}  // namespace

Prefetcher<Batch> PrefetchBatches(Dataset& dataset,
                                  std::vector<std::vector<int64_t>> indices,
                                  int64_t epoch, int workers) {
  const auto count = static_cast<int64_t>(indices.size());
  return Prefetcher<Batch>(
      count, workers,
      [&dataset, indices = std::move(indices), epoch](int64_t i) {
        return dataset.Load(indices[i], epoch);
      });
}

SyntheticDataset::SyntheticDataset(const SyntheticOptions& options)
    : size_(options.size) {
  const at::Generator generator = at::detail::createCPUGenerator(options.seed);
  batch_.images = torch::randn(
      {options.batch_size, 3, options.image_side, options.image_side},
      generator);
  batch_.labels = torch::randint(options.classes, {options.batch_size},
                                 generator, torch::kInt64);
}

Batch SyntheticDataset::Load(const std::vector<int64_t>& indices,
                             int64_t /*epoch*/) {
  const auto count = static_cast<int64_t>(indices.size());
  return {batch_.images.narrow(0, 0, count), batch_.labels.narrow(0, 0, count)};
}

DigitDataset::DigitDataset(DigitSet digits) : digits_(std::move(digits)) {}

std::string DigitDataset::recipe() const {
  return DescribeNormalisation({&kDigitMean, 1}, {&kDigitDeviation, 1});
}

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
      *pixel++ =
          (static_cast<float>(image[i]) / 255 - kDigitMean) / kDigitDeviation;
    }
    *label++ = digits_.labels[static_cast<size_t>(index)];
  }
  return batch;
}

ImageDataset::ImageDataset(ImageSet images,
                           std::optional<uint64_t> augmentation_seed)
    : images_(std::move(images)), augmentation_seed_(augmentation_seed) {}

std::string ImageDataset::recipe() const {
  return augmentation_seed_ ? DescribeCifar10Training()
                            : DescribeCifar10Evaluation();
}

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

std::string FolderDataset::recipe() const {
  return options_.augmentation_seed
             ? DescribeTraining(options_.recipe, options_.image_side)
             : DescribeEvaluation(options_.recipe, options_.image_side);
}

void FolderDataset::Check(int64_t index) { ReadImageFile(files_[index].path); }

Batch FolderDataset::Load(const std::vector<int64_t>& indices, int64_t epoch) {
  const auto count = static_cast<int64_t>(indices.size());
  const int64_t side = options_.image_side;
  Batch batch = {
      torch::empty({count, 3, side, side}),
      torch::empty({count}, torch::kInt64),
  };
  float* images = batch.images.data_ptr<float>();
  int64_t* labels = batch.labels.data_ptr<int64_t>();
  int64_t loaded = 0;
  for (const int64_t index : indices) {
    const auto sample = LoadSample(index, epoch, batch.unreadable);
    if (!sample) continue;
    images = std::copy(sample->image.values.begin(), sample->image.values.end(),
                       images);
    labels[loaded++] = sample->label;
  }
  batch.images = batch.images.narrow(0, 0, loaded);
  batch.labels = batch.labels.narrow(0, 0, loaded);
  return batch;
}

std::optional<FolderDataset::Sample> FolderDataset::LoadSample(
    int64_t index, int64_t epoch, std::vector<std::string>& unreadable) const {
  constexpr int kMostTries = 100;
  base::KeyedRandom others{options_.augmentation_seed.value_or(0),
                           static_cast<uint64_t>(epoch),
                           static_cast<uint64_t>(index), /*stream=*/1};
  int64_t from = index;
  std::string why;
  for (int i = 0; i <= kMostTries; ++i) {
    const LabelledFile& file = files_[from];
    try {
      return Sample{Transform(ReadImageFile(file.path), index, epoch),
                    file.label};
    } catch (const support::InputError& error) {
      if (!options_.skip_unreadable) throw;
      why = error.what();
    }
    if (i == 0) unreadable.push_back(why);
    if (!options_.augmentation_seed) return std::nullopt;
    if (files_.size() == 1) {
      throw support::InputError(
          "the only image of this data set cannot be read: " + why);
    }
    from = static_cast<int64_t>(others.Below(files_.size() - 1));
    if (from >= index) ++from;
  }
  throw support::InputError(
      "none of " + std::to_string(kMostTries) +
      " images that could replace another can be read; the last error: " + why);
}

PlanarImage FolderDataset::Transform(const RgbImage& image, int64_t index,
                                     int64_t epoch) const {
  const auto& [recipe, side, seed, skips] = options_;
  if (!seed) return TransformForEvaluation(image, recipe, side);
  const base::KeyedRandom random{*seed, static_cast<uint64_t>(epoch),
                                 static_cast<uint64_t>(index)};
  return TransformForTraining(
      image, ImageAugmentation::Draw(recipe, image.width, image.height, random),
      side);
}

}  // namespace hvdlite::trainers
