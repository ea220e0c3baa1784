// Labelled images in memory, as bytes.
#pragma once

#include <cstdint>
#include <vector>

namespace hvdlite::trainers {

// CIFAR-10's images: 32x32, three planes (red, green, blue) of rows.
inline constexpr int64_t kImageSide = 32;
inline constexpr int64_t kImageChannels = 3;
inline constexpr int64_t kImageBytes = kImageChannels * kImageSide * kImageSide;
inline constexpr int kCifar10Classes = 10;

struct ImageSet {
  std::vector<uint8_t> labels;
  std::vector<uint8_t> pixels;  // kImageBytes for each label

  int64_t size() const { return static_cast<int64_t>(labels.size()); }
  const uint8_t* image(int64_t index) const {
    return pixels.data() + index * kImageBytes;
  }
};

}  // namespace hvdlite::trainers
