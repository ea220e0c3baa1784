// Whole files as strings.
#pragma once

#include <filesystem>
#include <fstream>
#include <iterator>
#include <span>
#include <string>

#include "trainers/data/formats/data_file.h"

namespace hvdlite::trainers {

// Returns the content of the file, still compressed if it is.
inline std::string FileBytes(const std::filesystem::path& file) {
  std::ifstream stream(file, std::ios::binary);
  return {std::istreambuf_iterator<char>(stream), {}};
}

inline void WriteFileBytes(const std::filesystem::path& file,
                           const std::string& bytes) {
  std::ofstream(file, std::ios::binary) << bytes;
}

// Writes the bytes, compressed if the file's name ends in .gz.
inline void WritePlainOrGzipped(const std::filesystem::path& file,
                                const std::string& bytes) {
  ByteWriter writer(file);
  writer.Write(std::as_bytes(std::span(bytes)));
  writer.Close();
}

}  // namespace hvdlite::trainers
