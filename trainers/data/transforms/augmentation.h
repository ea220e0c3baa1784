// From an image to what a network sees: changed for training, and normalised.
#pragma once

#include <array>
#include <cstdint>

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

enum class ColourChange { kBrightness, kContrast, kSaturation, kHue };

// How a training image is changed, with torchvision's distributions.
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

  // For an image of width x height pixels. The first is that of the PACS
  // baselines of Carlucci et al., "Domain Generalization by Solving Jigsaw
  // Puzzles" (CVPR 2019), with crops of 0.8 to 1 of the area; the second the
  // usual one for ImageNet (Szegedy et al., "Going Deeper with Convolutions",
  // CVPR 2015, section 6), with crops of 0.08 to 1, which leaves colours alone.
  static ImageAugmentation Draw(int64_t width, int64_t height,
                                base::KeyedRandom random);
  static ImageAugmentation DrawCropAndFlip(int64_t width, int64_t height,
                                           base::KeyedRandom random);
};

// Both return planes of side x side values, normalised with the mean and
// standard deviation of ImageNet's training images.
PlanarImage TransformForTraining(const RgbImage& image,
                                 const ImageAugmentation& augmentation,
                                 int64_t side);

// Resizes the whole image, whatever its proportions.
PlanarImage TransformForEvaluation(const RgbImage& image, int64_t side);

}  // namespace hvdlite::trainers
