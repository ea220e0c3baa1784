#include "trainers/data/transforms/image_resize.h"

#include <algorithm>
#include <cmath>
#include <vector>

namespace hvdlite::trainers {
namespace {

// What one pixel of the output is made of: weights, which add up to 1, of
// consecutive pixels of the input.
struct Taps {
  int64_t first = 0;
  std::vector<float> weights;
};

// One for each of `out` pixels that replace `in` pixels of a row or column.
std::vector<Taps> TriangleFilter(int64_t in, int64_t out) {
  const double scale = static_cast<double>(in) / static_cast<double>(out);
  const double radius = std::max(scale, 1.0);
  std::vector<Taps> filter(out);
  for (int64_t i = 0; i < out; ++i) {
    const double centre = (static_cast<double>(i) + 0.5) * scale;
    const int64_t first = std::max<int64_t>(std::lround(centre - radius), 0);
    const int64_t last = std::min<int64_t>(std::lround(centre + radius), in);
    double sum = 0;
    std::vector<double> weights;
    for (int64_t j = first; j < last; ++j) {
      const double distance =
          std::abs(static_cast<double>(j) + 0.5 - centre) / radius;
      weights.push_back(std::max(1.0 - distance, 0.0));
      sum += weights.back();
    }
    filter[i].first = first;
    for (const double weight : weights) {
      filter[i].weights.push_back(static_cast<float>(weight / sum));
    }
  }
  return filter;
}

// The rows of the crop at their new width.
PlanarImage ResizeRows(const RgbImage& image, const CropBox& crop,
                       int64_t width) {
  const std::vector<Taps> filter = TriangleFilter(crop.width, width);
  PlanarImage output(width, crop.height);
  for (int64_t y = 0; y < crop.height; ++y) {
    const uint8_t* row =
        &image.pixels[3 * ((crop.top + y) * image.width + crop.left)];
    for (int64_t x = 0; x < width; ++x) {
      float sums[3] = {};
      const uint8_t* pixel = row + 3 * filter[x].first;
      for (const float weight : filter[x].weights) {
        for (float& sum : sums) sum += weight * static_cast<float>(*pixel++);
      }
      for (int channel = 0; channel < 3; ++channel) {
        output.plane(channel)[y * width + x] = sums[channel] / 255.0F;
      }
    }
  }
  return output;
}

PlanarImage ResizeColumns(const PlanarImage& image, int64_t height) {
  const std::vector<Taps> filter = TriangleFilter(image.height, height);
  PlanarImage output(image.width, height);
  for (int channel = 0; channel < 3; ++channel) {
    for (int64_t y = 0; y < height; ++y) {
      float* row = output.plane(channel) + y * image.width;
      const float* from = image.plane(channel) + filter[y].first * image.width;
      for (const float weight : filter[y].weights) {
        for (int64_t x = 0; x < image.width; ++x) row[x] += weight * from[x];
        from += image.width;
      }
    }
  }
  return output;
}

}  // namespace

PlanarImage CropAndResize(const RgbImage& image, const CropBox& crop,
                          int64_t width, int64_t height) {
  return ResizeColumns(ResizeRows(image, crop, width), height);
}

}  // namespace hvdlite::trainers
