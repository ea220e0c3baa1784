#include "trainers/data/sets/pattern_images.h"

#include <algorithm>
#include <cmath>
#include <numbers>

#include "trainers/data/sets/random.h"

namespace hvdlite::trainers {
namespace {

// Share of a class's stripes in red, green and blue: colours around the circle,
// neighbours close enough that the stripes' direction matters as well.
double Tint(int label, int channel) {
  const double hue = 2.0 * std::numbers::pi * label / kCifar10Classes;
  const double phase = 2.0 * std::numbers::pi * channel / kImageChannels;
  return 0.5 + 0.5 * std::cos(hue - phase);
}

void AppendImage(int label, KeyedRandom random, std::vector<uint8_t>& pixels) {
  const double angle = std::numbers::pi * label / kCifar10Classes;
  const double period = 6.0 + 4.0 * random.Uniform();
  const double phase = 2.0 * std::numbers::pi * random.Uniform();
  const double contrast = 60.0 + 60.0 * random.Uniform();
  constexpr double kNoise = 24.0;
  for (int channel = 0; channel < kImageChannels; ++channel) {
    for (int y = 0; y < kImageSide; ++y) {
      for (int x = 0; x < kImageSide; ++x) {
        const double along = x * std::cos(angle) + y * std::sin(angle);
        const double stripe =
            std::sin(2.0 * std::numbers::pi * along / period + phase);
        const double value = 110.0 + contrast * Tint(label, channel) * stripe +
                             kNoise * random.Normal();
        pixels.push_back(
            static_cast<uint8_t>(std::clamp(std::lround(value), 0L, 255L)));
      }
    }
  }
}

}  // namespace

ImageSet MakePatternImages(int64_t count, uint64_t seed) {
  ImageSet images;
  images.labels.reserve(count);
  images.pixels.reserve(count * kImageBytes);
  for (int64_t i = 0; i < count; ++i) {
    const int label = static_cast<int>(i % kCifar10Classes);
    images.labels.push_back(static_cast<uint8_t>(label));
    AppendImage(label, KeyedRandom{seed, static_cast<uint64_t>(i)},
                images.pixels);
  }
  return images;
}

}  // namespace hvdlite::trainers
