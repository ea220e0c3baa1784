#include <torch/types.h>

#include <memory>
#include <numeric>
#include <vector>

#include "trainers/data/sets/dataset.h"
#include "trainers/data/sets/patterns.h"
#include "trainers/models/image_networks.h"
#include "trainers/models/resnet.h"
#include "trainers/synthetic/tasks.h"

namespace hvdlite::trainers {
namespace {

// ImageNet's.
constexpr int64_t kImageSize = 224;
constexpr int64_t kClasses = 1000;

// ResNets for images with fewer pixels a side get the small-image stem.
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
