// Arrays of floats in NPY files, gzipped or not.
// NEP 1 (https://numpy.org/neps/nep-0001-npy-format.html) and the documentation
// of numpy.lib.format. Understood are headers of the format's versions 1.0, 2.0
// and 3.0 for arrays in C order.
#pragma once

#include <cstdint>
#include <filesystem>
#include <span>
#include <string_view>
#include <vector>

#include "trainers/data/formats/data_file.h"

namespace hvdlite::trainers {

// Little-endian IEEE 754 numbers, '<f4' and '<f8' in a header.
enum class NpyElement { kFloat32, kFloat64 };

int64_t ElementBytes(NpyElement element);

struct NpyHeader {
  NpyElement element = NpyElement::kFloat32;
  std::vector<int64_t> shape;  // of an array in C order; empty for a scalar
};

// How many elements an array of this shape has.
int64_t ElementCount(const std::vector<int64_t>& shape);

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

}  // namespace hvdlite::trainers
