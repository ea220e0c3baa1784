// MNIST's files: each of the two sets has a file of images and a file of
// labels, in IDX format. http://yann.lecun.com/exdb/mnist/
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

// Reads train-images-idx3-ubyte and train-labels-idx1-ubyte, or t10k-..., from
// `data_dir` or from its subdirectory MNIST/raw. If a file is missing, reads
// the same name with .gz. Throws an InputError with file, offset and expected
// value if a file is missing, cannot be read, or is not an array of 28x28
// images or of labels up to 9; also if there are no images, or another number
// of labels.
DigitSet ReadMnist(const std::filesystem::path& data_dir, MnistSplit split);

// Writes the two files of a set to `directory`, with names that end in .gz if
// they should be gzipped. Throws InputError on failure.
void WriteMnist(const std::filesystem::path& directory, MnistSplit split,
                const DigitSet& digits, bool gzipped);

}  // namespace hvdlite::trainers
