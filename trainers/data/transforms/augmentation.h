// From an image's bytes to what the network sees.
#pragma once

#include <cstdint>

namespace hvdlite::trainers {

// How an image is changed before a network is trained on it: the usual recipe
// for CIFAR-10, a crop of the image padded by four zero pixels on every side,
// flipped in half of the cases.
struct Augmentation {
  int shift_x = 0;  // pixels, -4 to 4
  int shift_y = 0;
  bool flip = false;

  // Determined by its arguments alone, not by rank, batch or earlier draws.
  static Augmentation Draw(uint64_t seed, int64_t epoch, int64_t sample);
};

// Writes the augmented image, normalised with the mean and standard deviation
// of CIFAR-10's training images, to `output`. Both have kImageBytes elements in
// planes. Padding is black before normalisation.
void AugmentAndNormalise(const uint8_t* image, const Augmentation& augmentation,
                         float* output);

}  // namespace hvdlite::trainers
