// Cropping and resizing.
#pragma once

#include <cstdint>

#include "trainers/data/formats/rgb_image.h"
#include "trainers/data/transforms/planar_image.h"

namespace hvdlite::trainers {

// A rectangle of pixels inside an image, of at least one pixel.
struct CropBox {
  int64_t left = 0;
  int64_t top = 0;
  int64_t width = 0;
  int64_t height = 0;

  bool operator==(const CropBox&) const = default;
};

// The crop, resized to `width` x `height`, with values from 0 to 1. Bilinear,
// with the filter widened by the factor of shrinking, so that every pixel of
// the crop counts: what Pillow's BILINEAR and torchvision with antialias do,
// but without rounding to bytes. Pixels outside of the crop have no influence.
PlanarImage CropAndResize(const RgbImage& image, const CropBox& crop,
                          int64_t width, int64_t height);

}  // namespace hvdlite::trainers
