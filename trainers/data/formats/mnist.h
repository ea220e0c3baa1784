// MNIST's files: one of images and one of labels for each of its two sets, in
// IDX format. http://yann.lecun.com/exdb/mnist/
#pragma once

#include <cstdint>
#include <filesystem>
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

enum class MnistSplit { kTrain, kTest };

// Reads train-images-idx3-ubyte and train-labels-idx1-ubyte, or t10k-..., or
// where one is missing the same name with .gz, from `data_dir`, or from its
// folder MNIST/raw. Throws InputError, with file, offset and what was expected,
// if a file is missing, cannot be read, is not such an array of 28x28 images
// or of labels up to 9, or if there are none or not as many of one as of the
// other.
DigitSet ReadMnist(const std::filesystem::path& data_dir, MnistSplit split);

// Writes the two files of a set to `folder`, with .gz at the end of their names
// if they are to be gzipped. Throws InputError if that fails.
void WriteMnist(const std::filesystem::path& folder, MnistSplit split,
                const DigitSet& digits, bool gzipped);

}  // namespace hvdlite::trainers
