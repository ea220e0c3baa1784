#include "trainers/data/formats/idx.h"

#include <array>
#include <cstdio>

#include "tools/support/input_error.h"
#include "trainers/data/formats/byte_reader.h"
#include "trainers/data/formats/byte_writer.h"

namespace hvdlite::trainers {
namespace {

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

// Big-endian, as are all numbers of the format.
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

// Returns the number of items.
uint32_t ReadHeader(ByteReader& reader, const IdxItem& item) {
  const uint32_t magic = ReadNumber(reader, "the magic number");
  if (magic != MagicOf(item)) {
    throw InputError(reader.name() + " has magic number " + Hexadecimal(magic) +
                     " at offset 0; expected " + Hexadecimal(MagicOf(item)) +
                     " (unsigned bytes, " +
                     std::to_string(item.shape.size() + 1) + " dimensions)");
  }
  const uint32_t items = ReadNumber(reader, "the dimensions");
  for (const uint32_t expected : item.shape) {
    const int64_t offset_bytes = reader.offset_bytes();
    const uint32_t found = ReadNumber(reader, "the dimensions");
    if (found != expected) {
      throw InputError(reader.name() + " has dimension " +
                       std::to_string(found) + " of the " + item.name +
                       "s at offset " + std::to_string(offset_bytes) +
                       "; expected " + std::to_string(expected));
    }
  }
  return items;
}

}  // namespace

int64_t SizeBytes(const IdxItem& item) {
  int64_t size_bytes = 1;
  for (const uint32_t size : item.shape) size_bytes *= size;
  return size_bytes;
}

int64_t FirstItemOffsetBytes(const IdxItem& item) {
  return static_cast<int64_t>(4 * (2 + item.shape.size()));
}

std::vector<uint8_t> ReadIdx(const std::filesystem::path& file,
                             const IdxItem& item) {
  ByteReader reader(file);
  const uint32_t items = ReadHeader(reader, item);
  const auto size_bytes = static_cast<size_t>(SizeBytes(item));
  // Grows with what the file really holds: its header may promise anything.
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

}  // namespace hvdlite::trainers
