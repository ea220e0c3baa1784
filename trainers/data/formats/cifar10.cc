#include "trainers/data/formats/cifar10.h"

#include <algorithm>
#include <cerrno>
#include <cstring>
#include <fstream>
#include <string>
#include <vector>

#include "absl/strings/str_cat.h"
#include "support/input_error.h"
#include "trainers/data/formats/data_file.h"

namespace hvdlite::trainers {
namespace {

namespace fs = std::filesystem;

constexpr char kCifar10Directory[] = "cifar-10-batches-bin";

bool IsTrainFile(const fs::path& file) {
  return file.filename().string().starts_with("data_batch_") &&
         file.extension() == ".bin";
}

std::vector<fs::path> ListFiles(const fs::path& directory, Cifar10Split split) {
  std::vector<fs::path> files;
  for (const fs::directory_entry& entry : fs::directory_iterator(directory)) {
    const fs::path& file = entry.path();
    if (split == Cifar10Split::kTrain ? IsTrainFile(file)
                                      : file.filename() == "test_batch.bin") {
      files.push_back(file);
    }
  }
  std::sort(files.begin(), files.end());
  return files;
}

// Appends the records of one file to `images`.
void ReadFile(const fs::path& file, ImageSet& images) {
  const std::string name = absl::StrCat("'", file.string(), "'");
  const std::vector<uint8_t> bytes = ReadWholeFile(file);
  const auto size_bytes = static_cast<int64_t>(bytes.size());
  if (size_bytes == 0 || size_bytes % kCifar10RecordBytes != 0) {
    throw support::InputError(
        name + " has " + std::to_string(size_bytes) +
        " bytes; expected a multiple of " +
        std::to_string(kCifar10RecordBytes) +
        " (one label byte and 3072 pixel bytes per record): record " +
        std::to_string(size_bytes / kCifar10RecordBytes) + ", at offset " +
        std::to_string(size_bytes / kCifar10RecordBytes * kCifar10RecordBytes) +
        ", is incomplete");
  }
  const int64_t records = size_bytes / kCifar10RecordBytes;
  images.labels.reserve(images.labels.size() + records);
  images.pixels.reserve(images.pixels.size() + records * kImageBytes);
  for (int64_t i = 0; i < records; ++i) {
    const auto record = bytes.begin() + i * kCifar10RecordBytes;
    const uint8_t label = *record;
    if (label >= kCifar10Classes) {
      throw support::InputError(
          "label " + std::to_string(label) + " in record " + std::to_string(i) +
          " of " + name + ", at offset " +
          std::to_string(i * kCifar10RecordBytes) + "; expected 0 to 9");
    }
    images.labels.push_back(label);
    images.pixels.insert(images.pixels.end(), record + 1,
                         record + kCifar10RecordBytes);
  }
}

}  // namespace

bool IsPartOfCifar10(const fs::path& path) {
  return IsTrainFile(path) || path.filename() == "test_batch.bin" ||
         path.filename() == kCifar10Directory;
}

ImageSet ReadCifar10(const fs::path& data_dir, Cifar10Split split) {
  std::vector<fs::path> files;
  try {
    files = ListFiles(data_dir, split);
    const fs::path inner = data_dir / kCifar10Directory;
    if (files.empty() && fs::is_directory(inner)) {
      files = ListFiles(inner, split);
    }
  } catch (const fs::filesystem_error& error) {
    ThrowCannotRead(
        "cannot read the data directory '" + data_dir.string() + "'",
        error.code());
  }
  if (files.empty()) {
    throw support::InputError(
        "no " +
        std::string(split == Cifar10Split::kTrain ? "data_batch_*.bin"
                                                  : "test_batch.bin") +
        " in '" + data_dir.string() + "' or its subdirectory " +
        kCifar10Directory +
        "; expected the binary version of CIFAR-10 (generate_cifar10 makes "
        "small files in its format)");
  }
  ImageSet images;
  for (const fs::path& file : files) ReadFile(file, images);
  return images;
}

void WriteCifar10File(const fs::path& file, const ImageSet& images,
                      int64_t first, int64_t last) {
  std::ofstream stream(file, std::ios::binary);
  for (int64_t i = first; i < last && stream; ++i) {
    stream.put(static_cast<char>(images.labels[i]));
    stream.write(reinterpret_cast<const char*>(images.image(i)), kImageBytes);
  }
  stream.close();
  if (!stream) {
    throw support::InputError("cannot write '" + file.string() +
                              "': " + std::strerror(errno));
  }
}

}  // namespace hvdlite::trainers
