#include "trainers/data/transforms/augmentation.h"

#include <algorithm>
#include <cmath>
#include <utility>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "base/keyed_random.h"
#include "trainers/data/formats/cifar10.h"
#include "trainers/data/transforms/planar_image.h"

namespace hvdlite::trainers {
namespace {

constexpr int kPadding = 4;

// Mean and deviation of CIFAR-10's training images, for pixels from 0 to 1.
constexpr float kCifar10Mean[kImageChannels] = {0.4914F, 0.4822F, 0.4465F};
constexpr float kCifar10Deviation[kImageChannels] = {0.2470F, 0.2435F, 0.2616F};

}  // namespace

Augmentation Augmentation::Draw(uint64_t seed, int64_t epoch, int64_t sample) {
  base::KeyedRandom random{seed, static_cast<uint64_t>(epoch),
                           static_cast<uint64_t>(sample)};
  Augmentation augmentation;
  augmentation.shift_x =
      static_cast<int>(random.Below(2 * kPadding + 1)) - kPadding;
  augmentation.shift_y =
      static_cast<int>(random.Below(2 * kPadding + 1)) - kPadding;
  augmentation.flip = random.Below(2) == 1;
  return augmentation;
}

void AugmentAndNormalise(const uint8_t* image, const Augmentation& augmentation,
                         float* output) {
  constexpr int kSide = static_cast<int>(kImageSide);
  for (int channel = 0; channel < kImageChannels; ++channel) {
    const uint8_t* plane = image + channel * kSide * kSide;
    for (int y = 0; y < kSide; ++y) {
      const int from_y = y + augmentation.shift_y;
      for (int x = 0; x < kSide; ++x) {
        const int from_x =
            (augmentation.flip ? kSide - 1 - x : x) + augmentation.shift_x;
        const bool inside =
            from_x >= 0 && from_x < kSide && from_y >= 0 && from_y < kSide;
        const float value =
            inside ? static_cast<float>(plane[from_y * kSide + from_x]) / 255.0F
                   : 0.0F;
        *output++ =
            (value - kCifar10Mean[channel]) / kCifar10Deviation[channel];
      }
    }
  }
}

std::string DescribeNormalisation(std::span<const float> mean,
                                  std::span<const float> deviation) {
  return absl::StrCat("normalised by the mean ", absl::StrJoin(mean, " "),
                      " and the deviation ", absl::StrJoin(deviation, " "));
}

std::string DescribeCifar10Training() {
  return absl::StrCat("CIFAR-10's recipe: padded by ", kPadding,
                      " pixels, random crop of ", kImageSide, "x", kImageSide,
                      ", flipped in half of the cases, ",
                      DescribeNormalisation(kCifar10Mean, kCifar10Deviation));
}

std::string DescribeCifar10Evaluation() {
  return absl::StrCat("CIFAR-10's recipe: unchanged, ",
                      DescribeNormalisation(kCifar10Mean, kCifar10Deviation));
}

namespace {

// Mean and deviation of ImageNet's training images, for pixels from 0 to 1.
constexpr float kImageNetMean[3] = {0.485F, 0.456F, 0.406F};
constexpr float kImageNetDeviation[3] = {0.229F, 0.224F, 0.225F};

// Limit for width / height and for its inverse.
constexpr double kMaxRatio = 4.0 / 3.0;
constexpr double kJitter = 0.4;
constexpr double kGreyShare = 0.1;

double MinArea(ImageRecipe recipe) {
  return recipe == ImageRecipe::kImageNet ? 0.08 : 0.8;
}

// The length of the shorter side before the centre crop: 256 for 224.
int64_t ShorterSideFor(int64_t side) {
  return std::lround(static_cast<double>(side) * 256 / 224);
}

double Between(double low, double high, base::KeyedRandom& random) {
  return low + (high - low) * random.Uniform();
}

// The largest centre crop with allowed proportions.
CropBox CentralCrop(int64_t width, int64_t height) {
  const auto limit = [](int64_t side) {
    return std::max<int64_t>(std::lround(static_cast<double>(side) * kMaxRatio),
                             1);
  };
  const int64_t crop_width = std::min(width, limit(height));
  const int64_t crop_height = std::min(height, limit(width));
  return {.left = (width - crop_width) / 2,
          .top = (height - crop_height) / 2,
          .width = crop_width,
          .height = crop_height};
}

// As in torchvision's RandomResizedCrop.get_params.
CropBox DrawCrop(int64_t width, int64_t height, double min_area,
                 base::KeyedRandom& random) {
  constexpr int kAttempts = 10;
  const auto area = static_cast<double>(width * height);
  for (int i = 0; i < kAttempts; ++i) {
    const double crop_area = area * Between(min_area, 1.0, random);
    const double ratio =
        std::exp(Between(-std::log(kMaxRatio), std::log(kMaxRatio), random));
    const int64_t crop_width = std::lround(std::sqrt(crop_area * ratio));
    const int64_t crop_height = std::lround(std::sqrt(crop_area / ratio));
    if (crop_width < 1 || crop_width > width || crop_height < 1 ||
        crop_height > height) {
      continue;
    }
    const auto left =
        static_cast<int64_t>(random.Below(width - crop_width + 1));
    const auto top =
        static_cast<int64_t>(random.Below(height - crop_height + 1));
    return {
        .left = left, .top = top, .width = crop_width, .height = crop_height};
  }
  return CentralCrop(width, height);
}

void Flip(PlanarImage& image) {
  for (auto row = image.values.begin(); row != image.values.end();
       row += image.width) {
    std::reverse(row, row + image.width);
  }
}

bool LeavesColours(const ImageAugmentation& augmentation) {
  return augmentation.brightness == 1 && augmentation.contrast == 1 &&
         augmentation.saturation == 1 && augmentation.hue == 0 &&
         !augmentation.grey;
}

void ChangeColours(const ImageAugmentation& augmentation, PlanarImage& image) {
  if (LeavesColours(augmentation)) return;
  for (const ColourChange change : augmentation.order) {
    switch (change) {
      case ColourChange::kBrightness:
        AdjustBrightness(image, augmentation.brightness);
        break;
      case ColourChange::kContrast:
        AdjustContrast(image, augmentation.contrast);
        break;
      case ColourChange::kSaturation:
        AdjustSaturation(image, augmentation.saturation);
        break;
      case ColourChange::kHue:
        AdjustHue(image, augmentation.hue);
        break;
    }
  }
  if (augmentation.grey) ConvertToGrey(image);
}

void Normalise(PlanarImage& image) {
  for (int channel = 0; channel < 3; ++channel) {
    float* plane = image.plane(channel);
    for (int64_t i = 0; i < image.plane_size(); ++i) {
      plane[i] =
          (plane[i] - kImageNetMean[channel]) / kImageNetDeviation[channel];
    }
  }
}

}  // namespace

std::string DescribeTraining(ImageRecipe recipe, int64_t side) {
  const bool is_imagenet = recipe == ImageRecipe::kImageNet;
  return absl::StrCat(is_imagenet ? "ImageNet's" : "domain generalisation's",
                      " recipe: random crop of ", MinArea(recipe),
                      " to 1 of the area and 3:4 to 4:3, resized to ", side,
                      "x", side, ", flipped in half of the cases, ",
                      is_imagenet
                          ? ""
                          : absl::StrCat("colours jittered by ", kJitter,
                                         " and grey in a tenth of the cases, "),
                      DescribeNormalisation(kImageNetMean, kImageNetDeviation));
}

std::string DescribeEvaluation(ImageRecipe recipe, int64_t side) {
  const std::string square = absl::StrCat(side, "x", side);
  return absl::StrCat(
      recipe == ImageRecipe::kImageNet
          ? absl::StrCat("ImageNet's recipe: shorter side resized to ",
                         ShorterSideFor(side), ", ", square, " in the middle, ")
          : absl::StrCat("domain generalisation's recipe: resized to ", square,
                         " without keeping the proportions, "),
      DescribeNormalisation(kImageNetMean, kImageNetDeviation));
}

ImageAugmentation ImageAugmentation::Draw(ImageRecipe recipe, int64_t width,
                                          int64_t height,
                                          base::KeyedRandom random) {
  const auto factor = [&] {
    return static_cast<float>(Between(1.0 - kJitter, 1.0 + kJitter, random));
  };
  ImageAugmentation augmentation;
  augmentation.crop = DrawCrop(width, height, MinArea(recipe), random);
  augmentation.flip = random.Below(2) == 1;
  if (recipe == ImageRecipe::kImageNet) return augmentation;
  for (size_t i = augmentation.order.size(); i > 1; --i) {
    std::swap(augmentation.order[i - 1], augmentation.order[random.Below(i)]);
  }
  augmentation.brightness = factor();
  augmentation.contrast = factor();
  augmentation.saturation = factor();
  augmentation.hue = static_cast<float>(Between(-kJitter, kJitter, random));
  augmentation.grey = random.Uniform() < kGreyShare;
  return augmentation;
}

PlanarImage TransformForTraining(const RgbImage& image,
                                 const ImageAugmentation& augmentation,
                                 int64_t side) {
  PlanarImage planes = CropAndResize(image, augmentation.crop, side, side);
  if (augmentation.flip) Flip(planes);
  ChangeColours(augmentation, planes);
  Normalise(planes);
  return planes;
}

PlanarImage TransformForEvaluation(const RgbImage& image, ImageRecipe recipe,
                                   int64_t side) {
  PlanarImage planes =
      recipe == ImageRecipe::kImageNet
          ? ResizeAndTakeMiddle(image, ShorterSideFor(side), side)
          : CropAndResize(image, {.width = image.width, .height = image.height},
                          side, side);
  Normalise(planes);
  return planes;
}

}  // namespace hvdlite::trainers
