// From an image to what a network sees: changed for training, and normalised.
#pragma once

#include <array>
#include <cstdint>
#include <span>
#include <string>

#include "base/keyed_random.h"
#include "trainers/data/formats/image_file.h"
#include "trainers/data/transforms/planar_image.h"

namespace hvdlite::trainers {

// How an image is changed before a network is trained on it: the usual recipe
// for CIFAR-10, a crop of the image padded by four zero pixels on every side,
// flipped in half of the cases.
struct Augmentation {
  int shift_x = 0;  // pixels, -4 to 4
  int shift_y = 0;
  bool flip = false;

  // Determined by its arguments alone, not by rank, batch or earlier draws.
  static Augmentation Draw(uint64_t seed, int64_t epoch, int64_t sample);
};

// Writes the augmented image, normalised with the mean and standard deviation
// of CIFAR-10's training images, to `output`. Both have kImageBytes elements in
// planes. Padding is black before normalisation.
void AugmentAndNormalise(const uint8_t* image, const Augmentation& augmentation,
                         float* output);

// For a report: "normalised by the mean ... and the deviation ...", a number
// for each channel.
std::string DescribeNormalisation(std::span<const float> mean,
                                  std::span<const float> deviation);

// For a report: that recipe, and what is done for evaluation.
std::string DescribeCifar10Training();
std::string DescribeCifar10Evaluation();

// How images of any size are changed for training, and shown for evaluation.
enum class ImageRecipe {
  // The usual one for ImageNet, with crops of 0.08 to 1 of the area (Szegedy et
  // al., "Going Deeper with Convolutions", CVPR 2015, section 6). Evaluation
  // takes the middle.
  kImageNet,
  // That of the PACS baselines of Carlucci et al., "Domain Generalization by
  // Solving Jigsaw Puzzles" (CVPR 2019): crops of 0.8 to 1 of the area, and
  // changes of colour. Evaluation takes the whole image.
  kDomainGeneralisation,
};

// For a report; `side` is that of the images made.
std::string DescribeTraining(ImageRecipe recipe, int64_t side);
std::string DescribeEvaluation(ImageRecipe recipe, int64_t side);

enum class ColourChange { kBrightness, kContrast, kSaturation, kHue };

// How a training image is changed, with torchvision's distributions. Colours
// stay unless the recipe says otherwise.
struct ImageAugmentation {
  CropBox crop;       // sides 3:4 to 4:3
  bool flip = false;  // left to right, in half of the cases
  std::array<ColourChange, 4> order = {
      ColourChange::kBrightness, ColourChange::kContrast,
      ColourChange::kSaturation, ColourChange::kHue};  // any permutation
  float brightness = 1;  // these three: 0.6 to 1.4
  float contrast = 1;
  float saturation = 1;
  float hue = 0;      // -0.4 to 0.4
  bool grey = false;  // in a tenth of the cases

  // For an image of width x height pixels.
  static ImageAugmentation Draw(ImageRecipe recipe, int64_t width,
                                int64_t height, base::KeyedRandom random);
};

// Both return planes of side x side values, normalised with the mean and
// standard deviation of ImageNet's training images.
PlanarImage TransformForTraining(const RgbImage& image,
                                 const ImageAugmentation& augmentation,
                                 int64_t side);

// kImageNet: resizes the shorter side to side * 256 / 224, the longer one in
// proportion, and takes the square in the middle. kDomainGeneralisation: the
// whole image, whatever its proportions.
PlanarImage TransformForEvaluation(const RgbImage& image, ImageRecipe recipe,
                                   int64_t side);

}  // namespace hvdlite::trainers
