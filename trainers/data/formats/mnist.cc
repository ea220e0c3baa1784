#include "trainers/data/formats/mnist.h"

#include <array>
#include <cstdio>
#include <optional>
#include <span>
#include <string>

#include "support/input_error.h"
#include "trainers/data/formats/data_file.h"

namespace hvdlite::trainers {
namespace {

namespace fs = std::filesystem;

// The type of the items in an IDX array.
struct IdxItem {
  std::string name;             // for messages, such as "image"
  std::vector<uint32_t> shape;  // {28, 28}; empty for single bytes
};

// The number of bytes per item.
int64_t SizeBytes(const IdxItem& item) {
  int64_t size_bytes = 1;
  for (const uint32_t size : item.shape) size_bytes *= size;
  return size_bytes;
}

// The offset of an array's first item in the file. Before it are the magic
// number, the number of items and their shape, four bytes each.
int64_t FirstItemOffsetBytes(const IdxItem& item) {
  return static_cast<int64_t>(4 * (2 + item.shape.size()));
}

constexpr uint32_t kUnsignedByteMagic = 0x00000800;

// The lowest byte of the magic number is the number of dimensions.
uint32_t MagicOf(const IdxItem& item) {
  return kUnsignedByteMagic + 1 + static_cast<uint32_t>(item.shape.size());
}

std::string Hexadecimal(uint32_t value) {
  std::array<char, 11> text;
  std::snprintf(text.data(), text.size(), "0x%08x", value);
  return text.data();
}

// All numbers of the format are big-endian.
uint32_t ReadNumber(ByteReader& reader, std::string_view what) {
  std::array<std::byte, 4> bytes;
  reader.ReadExactly(bytes, what);
  uint32_t number = 0;
  for (const std::byte byte : bytes) {
    number = number << 8 | std::to_integer<uint32_t>(byte);
  }
  return number;
}

void WriteNumber(ByteWriter& writer, uint32_t number) {
  std::array<std::byte, 4> bytes;
  for (size_t i = 0; i < bytes.size(); ++i) {
    bytes[i] = static_cast<std::byte>(number >> (24 - 8 * i));
  }
  writer.Write(bytes);
}

// Reads the header and returns the number of items.
uint32_t ReadHeader(ByteReader& reader, const IdxItem& item) {
  const uint32_t magic = ReadNumber(reader, "the magic number");
  if (magic != MagicOf(item)) {
    throw support::InputError(
        reader.name() + " has magic number " + Hexadecimal(magic) +
        " at offset 0; expected " + Hexadecimal(MagicOf(item)) +
        " (unsigned bytes, " + std::to_string(item.shape.size() + 1) +
        " dimensions)");
  }
  const uint32_t items = ReadNumber(reader, "the dimensions");
  for (const uint32_t expected : item.shape) {
    const int64_t offset_bytes = reader.offset_bytes();
    const uint32_t found = ReadNumber(reader, "the dimensions");
    if (found != expected) {
      throw support::InputError(reader.name() + " has dimension " +
                                std::to_string(found) + " of the " + item.name +
                                "s at offset " + std::to_string(offset_bytes) +
                                "; expected " + std::to_string(expected));
    }
  }
  return items;
}

// Reads an array of unsigned bytes (type 0x08) with one dimension more than the
// items, and returns the bytes of all items. Throws an InputError with file and
// offset if the file cannot be read, has another magic number or another shape
// of items, or holds fewer or more items than its header states.
std::vector<uint8_t> ReadIdx(const std::filesystem::path& file,
                             const IdxItem& item) {
  ByteReader reader(file);
  const uint32_t items = ReadHeader(reader, item);
  const auto size_bytes = static_cast<size_t>(SizeBytes(item));
  // Grows with the actual content of the file, since its header may state any
  // number.
  std::vector<uint8_t> bytes;
  for (uint32_t i = 0; i < items; ++i) {
    bytes.resize(bytes.size() + size_bytes);
    reader.ReadExactly(
        std::as_writable_bytes(std::span(bytes).last(size_bytes)),
        item.name + " " + std::to_string(i) + " of " + std::to_string(items));
  }
  reader.ExpectEnd();
  return bytes;
}

// Writes whole items as such an array, gzipped if the file's name ends in .gz.
// Throws InputError on failure.
void WriteIdx(const std::filesystem::path& file, const IdxItem& item,
              std::span<const uint8_t> bytes) {
  ByteWriter writer(file);
  WriteNumber(writer, MagicOf(item));
  WriteNumber(writer, static_cast<uint32_t>(
                          bytes.size() / static_cast<size_t>(SizeBytes(item))));
  for (const uint32_t size : item.shape) WriteNumber(writer, size);
  writer.Write(std::as_bytes(bytes));
  writer.Close();
}

constexpr char kMnistDirectory[] = "MNIST/raw";

const IdxItem& Image() {
  static const IdxItem item{.name = "image", .shape = {kDigitSide, kDigitSide}};
  return item;
}

const IdxItem& Label() {
  static const IdxItem item{.name = "label", .shape = {}};
  return item;
}

// Names such as train-images-idx3-ubyte and t10k-labels-idx1-ubyte.
std::string FileName(MnistSplit split, const IdxItem& item) {
  return std::string(split == MnistSplit::kTrain ? "train" : "t10k") + "-" +
         item.name + "s-idx" + std::to_string(item.shape.size() + 1) + "-ubyte";
}

fs::path FindMnistFile(const fs::path& data_dir, const std::string& name) {
  for (const fs::path& directory : {data_dir, data_dir / kMnistDirectory}) {
    if (const auto file = FindPlainOrGzipped(directory, name)) return *file;
  }
  throw support::InputError(
      "no " + name + " and no " + name + ".gz in '" + data_dir.string() +
      "' or its subdirectory " + kMnistDirectory +
      "; expected the files of MNIST (generate_mnist makes small "
      "files in its format)");
}

void RequireDigits(const std::vector<uint8_t>& labels, const fs::path& file) {
  for (size_t i = 0; i < labels.size(); ++i) {
    if (labels[i] < kDigitClasses) continue;
    throw support::InputError("label " + std::to_string(labels[i]) +
                              " of image " + std::to_string(i) + " in '" +
                              file.string() + "', at offset " +
                              std::to_string(FirstItemOffsetBytes(Label()) +
                                             static_cast<int64_t>(i)) +
                              "; expected 0 to 9");
  }
}

}  // namespace

DigitSet ReadMnist(const fs::path& data_dir, MnistSplit split) {
  RequireDataDirectory(data_dir);
  const fs::path image_file = FindMnistFile(data_dir, FileName(split, Image()));
  const fs::path label_file = FindMnistFile(data_dir, FileName(split, Label()));
  DigitSet digits{.labels = ReadIdx(label_file, Label()),
                  .pixels = ReadIdx(image_file, Image())};
  RequireDigits(digits.labels, label_file);
  const auto images = static_cast<int64_t>(digits.pixels.size()) / kDigitBytes;
  if (images != digits.size()) {
    throw support::InputError(
        "'" + image_file.string() + "' has " + std::to_string(images) +
        " images, '" + label_file.string() + "' " +
        std::to_string(digits.size()) +
        " labels (each at offset 4); expected as many labels as "
        "images");
  }
  if (images == 0) {
    throw support::InputError(
        "'" + image_file.string() +
        "' has 0 images, at offset 4; expected at least one");
  }
  return digits;
}

void WriteMnist(const fs::path& directory, MnistSplit split,
                const DigitSet& digits, bool gzipped) {
  const std::string ending = gzipped ? ".gz" : "";
  WriteIdx(directory / (FileName(split, Image()) + ending), Image(),
           digits.pixels);
  WriteIdx(directory / (FileName(split, Label()) + ending), Label(),
           digits.labels);
}

}  // namespace hvdlite::trainers
