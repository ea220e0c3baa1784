// CIFAR-10's binary files: records of one label byte and kImageBytes pixels.
// https://www.cs.toronto.edu/~kriz/cifar.html, "Binary version".
#pragma once

#include <cstdint>
#include <filesystem>
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

inline constexpr int64_t kCifar10RecordBytes = 1 + kImageBytes;

enum class Cifar10Split { kTrain, kTest };

// True if the path's name is that of one of the files, or of the directory
// cifar-10-batches-bin in which the archive stores them.
bool IsPartOfCifar10(const std::filesystem::path& path);

// Reads data_batch_*.bin (in order of their names) or test_batch.bin from
// `data_dir`, or from its subdirectory cifar-10-batches-bin. Throws an
// InputError with file, record and expected value if a file is missing, is not
// a whole number of records, or holds a label above 9. Throws as
// ThrowCannotRead does if a file cannot be read.
ImageSet ReadCifar10(const std::filesystem::path& data_dir, Cifar10Split split);

// Writes images [first, last) as one file. Throws InputError on failure.
void WriteCifar10File(const std::filesystem::path& file, const ImageSet& images,
                      int64_t first, int64_t last);

}  // namespace hvdlite::trainers
