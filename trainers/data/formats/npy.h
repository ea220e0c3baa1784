// Reads and writes arrays of floats in NPY files, gzipped or not. See NEP 1
// (https://numpy.org/neps/nep-0001-npy-format.html) and the documentation of
// numpy.lib.format. Headers may have the versions 1.0, 2.0 and 3.0; arrays must
// be in C order.
#pragma once

#include <cstdint>
#include <filesystem>
#include <span>
#include <string_view>
#include <vector>

#include "trainers/data/formats/data_file.h"

namespace hvdlite::trainers {

// Little-endian IEEE 754 numbers; '<f4' and '<f8' in a header.
enum class NpyElement { kFloat32, kFloat64 };

int64_t ElementBytes(NpyElement element);

struct NpyHeader {
  NpyElement element = NpyElement::kFloat32;
  std::vector<int64_t> shape;  // of an array in C order; empty for a scalar
};

// Returns the number of elements of an array with this shape.
int64_t ElementCount(const std::vector<int64_t>& shape);

// Reads an array piece by piece, for arrays that do not fit into memory. All
// functions throw an InputError with file and offset if the file cannot be
// read, is not such an array, or holds fewer or more elements than its header
// states.
class NpyReader {
 public:
  explicit NpyReader(const std::filesystem::path& file);

  const std::vector<int64_t>& shape() const { return header_.shape; }
  NpyElement element() const { return header_.element; }

  // The file's name in quotes, for messages.
  const std::string& name() const { return reader_.name(); }

  // The offset of the next element in the file.
  int64_t offset_bytes() const { return reader_.offset_bytes(); }

  // The number of unread elements.
  int64_t remaining() const { return remaining_; }

  // Reads the next values.size() elements, at most remaining(), in C order.
  // Elements of type f8 are rounded to floats. `what` names the elements in
  // error messages. The file must end after the last element.
  void Read(std::span<float> values, std::string_view what);

 private:
  ByteReader reader_;
  const NpyHeader header_;
  int64_t remaining_;
  std::vector<double> doubles_;  // elements before rounding
};

// Writes an array piece by piece. Write as many elements as the shape has, then
// call Close(). Throws an InputError that names the file on failure.
class NpyWriter {
 public:
  // Compresses the file if its name ends in .gz.
  NpyWriter(const std::filesystem::path& file, const NpyHeader& header);

  void Write(std::span<const float> values);
  void Close();

 private:
  ByteWriter writer_;
  const NpyElement element_;
};

}  // namespace hvdlite::trainers
