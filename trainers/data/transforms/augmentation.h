// Transforms images for training and evaluation, and normalises them.
#pragma once

#include <array>
#include <cstdint>
#include <span>
#include <string>

#include "base/keyed_random.h"
#include "trainers/data/formats/image_file.h"
#include "trainers/data/transforms/planar_image.h"

namespace hvdlite::trainers {

// The random transformation of an image before training, with the usual recipe
// for CIFAR-10: a crop of the image padded by four zero pixels on every side,
// flipped in half of the cases.
struct Augmentation {
  int shift_x = 0;  // pixels, -4 to 4
  int shift_y = 0;
  bool flip = false;

  // Depends only on the arguments, not on rank, batch or earlier draws.
  static Augmentation Draw(uint64_t seed, int64_t epoch, int64_t sample);
};

// Writes the augmented image to `output`, normalised with the mean and standard
// deviation of CIFAR-10's training images. Both have kImageBytes elements in
// planes. Padding is black before normalisation.
void AugmentAndNormalise(const uint8_t* image, const Augmentation& augmentation,
                         float* output);

// Text for a report: "normalised by the mean ... and the deviation ...", with a
// number for each channel.
std::string DescribeNormalisation(std::span<const float> mean,
                                  std::span<const float> deviation);

// Texts for a report: CIFAR-10's recipe for training and for evaluation.
std::string DescribeCifar10Training();
std::string DescribeCifar10Evaluation();

// How images of any size are transformed for training and evaluation.
enum class ImageRecipe {
  // The usual recipe for ImageNet, with crops of 0.08 to 1 of the area (Szegedy
  // et al., "Going Deeper with Convolutions", CVPR 2015, section 6). Evaluation
  // uses the centre crop.
  kImageNet,
  // The recipe of the PACS baselines of Carlucci et al., "Domain Generalization
  // by Solving Jigsaw Puzzles" (CVPR 2019): crops of 0.8 to 1 of the area, and
  // changes of colour. Evaluation uses the whole image.
  kDomainGeneralisation,
};

// Texts for a report; `side` is that of the resulting images.
std::string DescribeTraining(ImageRecipe recipe, int64_t side);
std::string DescribeEvaluation(ImageRecipe recipe, int64_t side);

enum class ColourChange { kBrightness, kContrast, kSaturation, kHue };

// The random transformation of a training image, with torchvision's
// distributions. Colours change only if the recipe includes this.
struct ImageAugmentation {
  CropBox crop;       // sides 3:4 to 4:3
  bool flip = false;  // left to right, in half of the cases
  std::array<ColourChange, 4> order = {
      ColourChange::kBrightness, ColourChange::kContrast,
      ColourChange::kSaturation, ColourChange::kHue};  // any permutation
  float brightness = 1;  // these three are from 0.6 to 1.4
  float contrast = 1;
  float saturation = 1;
  float hue = 0;      // -0.4 to 0.4
  bool grey = false;  // in a tenth of the cases

  // Draws for an image of width x height pixels.
  static ImageAugmentation Draw(ImageRecipe recipe, int64_t width,
                                int64_t height, base::KeyedRandom random);
};

// Both functions return planes of side x side values, normalised with the mean
// and standard deviation of ImageNet's training images.
PlanarImage TransformForTraining(const RgbImage& image,
                                 const ImageAugmentation& augmentation,
                                 int64_t side);

// kImageNet: resizes the shorter side to side * 256 / 224, the longer one in
// proportion, and returns the square in the centre. kDomainGeneralisation:
// resizes the whole image to a square without keeping its proportions.
PlanarImage TransformForEvaluation(const RgbImage& image, ImageRecipe recipe,
                                   int64_t side);

}  // namespace hvdlite::trainers
