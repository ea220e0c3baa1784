// An image as transforms work on it.
#pragma once

#include <cstddef>
#include <cstdint>
#include <vector>

namespace hvdlite::trainers {

// Three planes (red, green, blue) of rows; 0 to 1 until normalised.
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

}  // namespace hvdlite::trainers
