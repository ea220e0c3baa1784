// Labelled images of digits in memory, as bytes.
#pragma once

#include <cstdint>
#include <vector>

namespace hvdlite::trainers {

// MNIST's images: 28x28 in rows, one channel, 0 for paper and 255 for ink.
inline constexpr int64_t kDigitSide = 28;
inline constexpr int64_t kDigitBytes = kDigitSide * kDigitSide;
inline constexpr int kDigitClasses = 10;

struct DigitSet {
  std::vector<uint8_t> labels;
  std::vector<uint8_t> pixels;  // kDigitBytes for each label

  int64_t size() const { return static_cast<int64_t>(labels.size()); }
  const uint8_t* image(int64_t index) const {
    return pixels.data() + index * kDigitBytes;
  }
};

}  // namespace hvdlite::trainers
