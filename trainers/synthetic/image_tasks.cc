#include <torch/types.h>

#include "trainers/models/alexnet.h"
#include "trainers/models/conv3d.h"
#include "trainers/models/memory_format.h"
#include "trainers/models/resnet.h"
#include "trainers/models/vgg16.h"
#include "trainers/synthetic/classification.h"
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

}  // namespace hvdlite::trainers
