// Arrays of bytes in IDX files, gzipped or not.
// http://yann.lecun.com/exdb/mnist/, "The IDX file format".
#pragma once

#include <cstdint>
#include <filesystem>
#include <span>
#include <string>
#include <vector>

namespace hvdlite::trainers {

// What an IDX array is an array of.
struct IdxItem {
  std::string name;             // for messages, such as "image"
  std::vector<uint32_t> shape;  // {28, 28}; empty for single bytes
};

// The number of bytes of an item.
int64_t SizeBytes(const IdxItem& item);

// Offset in the file of an array's first item: behind the magic number, the
// number of items and their shape, four bytes each.
int64_t FirstItemOffsetBytes(const IdxItem& item);

// Reads an array of unsigned bytes (type 0x08) with one dimension more than the
// items have; returns the bytes of all items. Throws InputError, with file and
// offset, if the file cannot be read, has another magic number or items of
// another shape, or holds fewer or more items than it says.
std::vector<uint8_t> ReadIdx(const std::filesystem::path& file,
                             const IdxItem& item);

// Writes whole items as such an array, gzipped if the file's name ends in .gz.
// Throws InputError if that fails.
void WriteIdx(const std::filesystem::path& file, const IdxItem& item,
              std::span<const uint8_t> bytes);

}  // namespace hvdlite::trainers
