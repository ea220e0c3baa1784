#include <torch/types.h>

#include <memory>
#include <numeric>
#include <stdexcept>
#include <utility>
#include <vector>

#include "base/keyed_random.h"
#include "support/input_error.h"
#include "trainers/data/sets/dataset.h"
#include "trainers/data/sets/image_folder.h"
#include "trainers/data/sets/patterns.h"
#include "trainers/data/sets/prefetcher.h"
#include "trainers/models/detection_network.h"
#include "trainers/models/image_networks.h"
#include "trainers/models/resnet.h"
#include "trainers/synthetic/tasks.h"

namespace hvdlite::trainers {
namespace {

// ImageNet's numbers.
constexpr int64_t kImageSize = 224;
constexpr int64_t kClasses = 1000;

// ResNets get the small-image stem for images with fewer pixels a side.
constexpr int64_t kSmallImageSize = 64;

template <typename Model>
SyntheticTask ImageTask(Model model, const SyntheticTaskOptions& options) {
  const at::MemoryFormat format = MemoryFormatOf(options);
  SetMemoryFormat(*model, format);
  const at::Generator random = GeneratorOf(options);
  const int64_t side = SizeOr(options.image_size, kImageSize);
  const torch::Tensor images =
      torch::randn({options.batch_size, 3, side, side}, random)
          .contiguous(format);
  const torch::Tensor labels =
      torch::randint(SizeOr(options.classes, kClasses), {options.batch_size},
                     random, torch::kInt64);
  return Classification(model, images, labels);
}

struct LoaderOptions {
  int64_t batch_size = 1;  // at most the dataset's size
  int workers = 0;         // loading threads; 0: Next() loads
  uint64_t seed = 0;       // for the order
};

// Loads whole batches of a data set. Each epoch has its own random order.
class BatchLoader {
 public:
  BatchLoader(std::unique_ptr<Dataset> dataset, const LoaderOptions& options)
      : dataset_(std::move(dataset)), options_(options) {}

  Batch Next() {
    if (left_ == 0) BeginEpoch();
    --left_;
    try {
      return batches_->Next();
    } catch (const support::InputError& error) {
      throw std::runtime_error(error.what());  // only this rank failed
    }
  }

 private:
  void BeginEpoch() {
    std::vector<int64_t> order(static_cast<size_t>(dataset_->size()));
    std::iota(order.begin(), order.end(), 0);
    base::KeyedRandom random{options_.seed, static_cast<uint64_t>(epoch_)};
    for (size_t i = order.size(); i > 1; --i) {
      std::swap(order[i - 1], order[random.Below(i)]);
    }
    left_ = dataset_->size() / options_.batch_size;
    std::vector<std::vector<int64_t>> batches;
    for (int64_t i = 0; i < left_; ++i) {
      const auto first = order.begin() + i * options_.batch_size;
      batches.emplace_back(first, first + options_.batch_size);
    }
    batches_.reset(new Prefetcher<Batch>(PrefetchBatches(
        *dataset_, std::move(batches), epoch_++, options_.workers)));
  }

  const std::unique_ptr<Dataset> dataset_;
  const LoaderOptions options_;
  std::unique_ptr<Prefetcher<Batch>> batches_;  // of the current epoch
  int64_t left_ = 0;                            // remaining batches
  int64_t epoch_ = 0;
};

std::unique_ptr<Dataset> MakeDataset(const SyntheticTaskOptions& options) {
  if (options.data_dir.empty()) {
    constexpr int64_t kBatches = 16;  // in memory
    return std::make_unique<ImageDataset>(
        MakePatternImages(kBatches * options.batch_size, options.seed),
        options.seed);
  }
  return std::make_unique<FolderDataset>(
      ListImageFolder(options.data_dir, {}).train,
      FolderOptions{.image_side = SizeOr(options.image_size, kImageSize),
                    .augmentation_seed = options.seed});
}

}  // namespace

SyntheticTask MakeResNetTask(const SyntheticTaskOptions& options) {
  return ImageTask(
      ResNet(ResNetOptions{
          .architecture = options.model,
          .classes = SizeOr(options.classes, kClasses),
          .small_image_stem =
              SizeOr(options.image_size, kImageSize) < kSmallImageSize}),
      options);
}

SyntheticTask MakeAlexNetTask(const SyntheticTaskOptions& options) {
  AlexNetOptions sizes = {.classes = SizeOr(options.classes, kClasses)};
  sizes.hidden = SizeOr(options.hidden, sizes.hidden);
  return ImageTask(AlexNet(sizes), options);
}

SyntheticTask MakeVgg16Task(const SyntheticTaskOptions& options) {
  Vgg16Options sizes = {.classes = SizeOr(options.classes, kClasses)};
  sizes.hidden = SizeOr(options.hidden, sizes.hidden);
  return ImageTask(Vgg16(sizes), options);
}

SyntheticTask MakeConv3dTask(const SyntheticTaskOptions& options) {
  Conv3dNetOptions sizes;
  sizes.classes = SizeOr(options.classes, sizes.classes);
  sizes.width = SizeOr(options.width, sizes.width);
  sizes.hidden = SizeOr(options.hidden, sizes.hidden);
  const at::Generator random = GeneratorOf(options);
  return Classification(
      Conv3dNet(sizes),
      torch::randn({options.batch_size, 3, 16, 112, 112}, random),
      torch::randint(sizes.classes, {options.batch_size}, random,
                     torch::kInt64));
}

SyntheticTask MakeSsd300Task(const SyntheticTaskOptions& options) {
  constexpr int64_t kSide = 300;
  constexpr int64_t kObjects = 8;  // in each image
  constexpr double kLargest = 0.5;
  Ssd300Options sizes;
  sizes.classes = SizeOr(options.classes, sizes.classes);
  Ssd300 model(sizes);
  const at::MemoryFormat format = MemoryFormatOf(options);
  SetMemoryFormat(*model, format);
  const at::Generator random = GeneratorOf(options);
  const torch::Tensor images =
      torch::randn({options.batch_size, 3, kSide, kSide}, random)
          .contiguous(format);
  // A box has 5 to 50 % of the image's sides and lies completely inside.
  const torch::Tensor extents =
      0.05 + (kLargest - 0.05) *
                 torch::rand({options.batch_size, kObjects, 2}, random);
  const torch::Tensor centres =
      extents / 2 + (1 - extents) * torch::rand(extents.sizes(), random);
  const torch::Tensor labels = torch::randint(
      1, sizes.classes, {options.batch_size, kObjects}, random, torch::kInt64);
  const SsdTargets targets =
      MatchSsdTargets(torch::cat({centres, extents}, 2), labels);
  return {.model = model.ptr(),
          .loss = [=]() mutable { return SsdLoss(model(images), targets); }};
}

SyntheticTask MakeImageLoadingTask(const SyntheticTaskOptions& options) {
  std::unique_ptr<Dataset> dataset = MakeDataset(options);
  if (dataset->size() < options.batch_size) {
    throw support::InputError("--data-dir '" + options.data_dir + "' has " +
                              std::to_string(dataset->size()) +
                              " training images, less than a batch of " +
                              std::to_string(options.batch_size));
  }
  const auto loader = std::make_shared<BatchLoader>(
      std::move(dataset), LoaderOptions{.batch_size = options.batch_size,
                                        .workers = options.workers,
                                        .seed = options.seed});
  return {.model = nullptr, .loss = [loader] {
            loader->Next();
            return torch::zeros({});
          }};
}

}  // namespace hvdlite::trainers
