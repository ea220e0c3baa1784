// Arrays of floats in NPY files, gzipped or not.
// See npy_header.h for the part of the format that is understood.
#pragma once

#include <cstdint>
#include <filesystem>
#include <span>
#include <string_view>
#include <vector>

#include "trainers/data/formats/byte_reader.h"
#include "trainers/data/formats/byte_writer.h"
#include "trainers/data/formats/npy_header.h"

namespace hvdlite::trainers {

// Reads an array piece by piece, so that it need not fit into memory. All
// functions throw InputError, with file and offset, if the file cannot be read,
// is not such an array, or holds fewer or more elements than its header says.
class NpyReader {
 public:
  explicit NpyReader(const std::filesystem::path& file);

  const std::vector<int64_t>& shape() const { return header_.shape; }
  NpyElement element() const { return header_.element; }

  // The file's name in quotes, for messages.
  const std::string& name() const { return reader_.name(); }

  // Where in the file the next element is.
  int64_t offset_bytes() const { return reader_.offset_bytes(); }

  // Elements that have not been read.
  int64_t remaining() const { return remaining_; }

  // Reads the next values.size() elements, at most remaining(), in C order.
  // Those of type f8 are rounded to floats. `what` names them in the message of
  // an error. With the last element the file must end.
  void Read(std::span<float> values, std::string_view what);

 private:
  ByteReader reader_;
  const NpyHeader header_;
  int64_t remaining_;
  std::vector<double> doubles_;  // read, not yet rounded
};

// Writes an array piece by piece: in all as many elements as the shape has,
// then Close(). Throws InputError, with the file, if that fails.
class NpyWriter {
 public:
  // Gzips if the file's name ends in .gz.
  NpyWriter(const std::filesystem::path& file, const NpyHeader& header);

  void Write(std::span<const float> values);
  void Close();

 private:
  ByteWriter writer_;
  const NpyElement element_;
};

struct NpyArray {
  std::vector<int64_t> shape;
  std::vector<float> values;  // in C order
};

// Reads a whole array. Errors as those of NpyReader.
NpyArray ReadNpy(const std::filesystem::path& file);

// Writes a whole array. Errors as those of NpyWriter.
void WriteNpy(const std::filesystem::path& file, const NpyArray& array,
              NpyElement element);

}  // namespace hvdlite::trainers
