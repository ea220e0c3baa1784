#include "trainers/data/transforms/augmentation.h"

#include "trainers/data/formats/image_set.h"
#include "trainers/data/sets/random.h"

namespace hvdlite::trainers {
namespace {

constexpr int kPadding = 4;

// Of CIFAR-10's training images, for pixels from 0 to 1.
constexpr float kMean[kImageChannels] = {0.4914F, 0.4822F, 0.4465F};
constexpr float kDeviation[kImageChannels] = {0.2470F, 0.2435F, 0.2616F};

}  // namespace

Augmentation Augmentation::Draw(uint64_t seed, int64_t epoch, int64_t sample) {
  KeyedRandom random{seed, static_cast<uint64_t>(epoch),
                     static_cast<uint64_t>(sample)};
  Augmentation augmentation;
  augmentation.shift_x =
      static_cast<int>(random.Below(2 * kPadding + 1)) - kPadding;
  augmentation.shift_y =
      static_cast<int>(random.Below(2 * kPadding + 1)) - kPadding;
  augmentation.flip = random.Below(2) == 1;
  return augmentation;
}

void AugmentAndNormalise(const uint8_t* image, const Augmentation& augmentation,
                         float* output) {
  constexpr int kSide = static_cast<int>(kImageSide);
  for (int channel = 0; channel < kImageChannels; ++channel) {
    const uint8_t* plane = image + channel * kSide * kSide;
    for (int y = 0; y < kSide; ++y) {
      const int from_y = y + augmentation.shift_y;
      for (int x = 0; x < kSide; ++x) {
        const int from_x =
            (augmentation.flip ? kSide - 1 - x : x) + augmentation.shift_x;
        const bool inside =
            from_x >= 0 && from_x < kSide && from_y >= 0 && from_y < kSide;
        const float value =
            inside ? static_cast<float>(plane[from_y * kSide + from_x]) / 255.0F
                   : 0.0F;
        *output++ = (value - kMean[channel]) / kDeviation[channel];
      }
    }
  }
}

}  // namespace hvdlite::trainers
