// An image as decoders give it.
#pragma once

#include <cstdint>
#include <vector>

namespace hvdlite::trainers {

// Rows from top to bottom, of pixels from left to right, of a byte each of red,
// green and blue.
struct RgbImage {
  int64_t width = 0;
  int64_t height = 0;
  std::vector<uint8_t> pixels = {};  // 3 * width * height

  bool operator==(const RgbImage&) const = default;
};

// Larger images are refused before memory is asked for: a damaged or malicious
// header may claim any size.
inline constexpr int64_t kMaxImagePixels = int64_t{1} << 26;

}  // namespace hvdlite::trainers
