#include "trainers/data/sets/pattern_digits.h"

#include <algorithm>
#include <array>
#include <cmath>

#include "trainers/data/sets/random.h"

namespace hvdlite::trainers {
namespace {

// A digit is drawn in a box of kWidth x kHeight pixels.
constexpr int kWidth = 10;
constexpr int kHeight = 18;

struct Segment {
  int left, top;  // of the stroke's centre line
  int right, bottom;
};

constexpr std::array<Segment, 7> kSegments = {{
    {0, 0, kWidth, 0},                       // a: top
    {kWidth, 0, kWidth, kHeight / 2},        // b: upper right
    {kWidth, kHeight / 2, kWidth, kHeight},  // c: lower right
    {0, kHeight, kWidth, kHeight},           // d: bottom
    {0, kHeight / 2, 0, kHeight},            // e: lower left
    {0, 0, 0, kHeight / 2},                  // f: upper left
    {0, kHeight / 2, kWidth, kHeight / 2},   // g: middle
}};

// Which segments are lit, a first, for 0 to 9.
constexpr std::array<const char*, kDigitClasses> kLit = {
    "1111110", "0110000", "1101101", "1111001", "0110011",
    "1011011", "1011111", "1110000", "1111111", "1111011"};

struct Stroke {
  int shift_x, shift_y;  // of the box's corner
  int radius;            // strokes are 2 * radius + 1 pixels thick
};

bool Covers(const Segment& segment, const Stroke& stroke, int x, int y) {
  return x >= segment.left + stroke.shift_x - stroke.radius &&
         x <= segment.right + stroke.shift_x + stroke.radius &&
         y >= segment.top + stroke.shift_y - stroke.radius &&
         y <= segment.bottom + stroke.shift_y + stroke.radius;
}

bool IsInk(int label, const Stroke& stroke, int x, int y) {
  for (size_t i = 0; i < kSegments.size(); ++i) {
    if (kLit[label][i] == '1' && Covers(kSegments[i], stroke, x, y))
      return true;
  }
  return false;
}

void AppendImage(int label, KeyedRandom random, std::vector<uint8_t>& pixels) {
  constexpr uint64_t kShifts = 5;  // -2 to 2 pixels from the centre
  constexpr int kFirstShift = -2;
  const auto shift = [&](int64_t size) {
    return static_cast<int>((kDigitSide - size) / 2) + kFirstShift +
           static_cast<int>(random.Below(kShifts));
  };
  const int shift_x = shift(kWidth);
  const int shift_y = shift(kHeight);
  const Stroke stroke{.shift_x = shift_x,
                      .shift_y = shift_y,
                      .radius = 1 + static_cast<int>(random.Below(2))};
  const double brightness = 130.0 + 120.0 * random.Uniform();
  constexpr double kNoise = 24.0;
  for (int y = 0; y < kDigitSide; ++y) {
    for (int x = 0; x < kDigitSide; ++x) {
      const double ink = IsInk(label, stroke, x, y) ? brightness : 0.0;
      pixels.push_back(static_cast<uint8_t>(
          std::clamp(std::lround(ink + kNoise * random.Normal()), 0L, 255L)));
    }
  }
}

}  // namespace

DigitSet MakePatternDigits(int64_t count, uint64_t seed) {
  DigitSet digits;
  digits.labels.reserve(count);
  digits.pixels.reserve(count * kDigitBytes);
  for (int64_t i = 0; i < count; ++i) {
    const int label = static_cast<int>(i % kDigitClasses);
    digits.labels.push_back(static_cast<uint8_t>(label));
    AppendImage(label, KeyedRandom{seed, static_cast<uint64_t>(i)},
                digits.pixels);
  }
  return digits;
}

}  // namespace hvdlite::trainers
