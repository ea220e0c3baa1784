// Reads and writes whole arrays in NPY files.
#pragma once

#include <algorithm>
#include <cstdint>
#include <filesystem>
#include <span>
#include <vector>

#include "trainers/data/formats/npy.h"

namespace hvdlite::trainers {

struct NpyArray {
  std::vector<int64_t> shape;
  std::vector<float> values;  // in C order
};

// Throws the errors of NpyReader.
inline NpyArray ReadNpy(const std::filesystem::path& file) {
  // Grows with the actual content of the file, since its header may state any
  // size.
  constexpr int64_t kBlockElements = 1 << 18;
  NpyReader reader(file);
  NpyArray array{.shape = reader.shape(), .values = {}};
  while (reader.remaining() > 0) {
    const auto count =
        static_cast<size_t>(std::min(reader.remaining(), kBlockElements));
    array.values.resize(array.values.size() + count);
    reader.Read(std::span(array.values).last(count), "the elements");
  }
  return array;
}

// Throws the errors of NpyWriter.
inline void WriteNpy(const std::filesystem::path& file, const NpyArray& array,
                     NpyElement element) {
  NpyWriter writer(file, {.element = element, .shape = array.shape});
  writer.Write(array.values);
  writer.Close();
}

}  // namespace hvdlite::trainers
