// The image type of transforms, with cropping, resizing and changes of colour.
#pragma once

#include <cstddef>
#include <cstdint>
#include <vector>

#include "trainers/data/formats/image_file.h"

namespace hvdlite::trainers {

// Three planes (red, green, blue) of rows. Values are from 0 to 1 before
// normalisation.
struct PlanarImage {
  PlanarImage(int64_t image_width, int64_t image_height)
      : width(image_width),
        height(image_height),
        values(3 * image_width * image_height) {}

  int64_t plane_size() const { return width * height; }
  float* plane(int channel) { return values.data() + channel * plane_size(); }
  const float* plane(int channel) const {
    return values.data() + channel * plane_size();
  }

  int64_t width;
  int64_t height;
  std::vector<float> values;
};

// A rectangle of at least one pixel inside an image.
struct CropBox {
  int64_t left = 0;
  int64_t top = 0;
  int64_t width = 0;
  int64_t height = 0;

  bool operator==(const CropBox&) const = default;
};

// Returns the crop, resized to `width` x `height`, with values from 0 to 1. The
// filter is bilinear. When it shrinks the image, it is widened by the factor,
// so that every pixel of the crop counts. Pillow's BILINEAR and torchvision
// with antialias do the same, but round to bytes. Pixels outside the crop have
// no influence.
PlanarImage CropAndResize(const RgbImage& image, const CropBox& crop,
                          int64_t width, int64_t height);

// Resizes the image so that its shorter side has `shorter` pixels and the
// longer one keeps the proportions (rounded down). Returns the `side` x `side`
// pixels in the centre, `side` <= `shorter`: torchvision's Resize and
// CenterCrop. Values and filter are as in CropAndResize.
PlanarImage ResizeAndTakeMiddle(const RgbImage& image, int64_t shorter,
                                int64_t side);

// The changes of colour are defined as in torchvision's transforms.functional,
// on values from 0 to 1. Results are clamped to that range.

// Multiplies all values.
void AdjustBrightness(PlanarImage& image, float factor);

// Moves all values away from the mean luminance (factor above 1) or towards it.
void AdjustContrast(PlanarImage& image, float factor);

// Moves each pixel away from its luminance (factor above 1) or towards it.
void AdjustSaturation(PlanarImage& image, float factor);

// Turns the hue by `shift` of the colour circle, -0.5 to 0.5; 1/3 turns red
// into green. Saturation and value, in HSV, do not change.
void AdjustHue(PlanarImage& image, float shift);

// Sets red, green and blue to the luminance, 0.2989 R + 0.587 G + 0.114 B.
void ConvertToGrey(PlanarImage& image);

}  // namespace hvdlite::trainers
