// What an NPY file says about the array that it holds.
// NEP 1 (https://numpy.org/neps/nep-0001-npy-format.html) and the documentation
// of numpy.lib.format.
#pragma once

#include <cstdint>
#include <vector>

#include "trainers/data/formats/byte_reader.h"
#include "trainers/data/formats/byte_writer.h"

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

// Reads the header of format version 1.0, 2.0 or 3.0 from the start of a file,
// up to the first element. Throws InputError, with file and offset, if it is
// none, is cut short or malformed, or describes an array that is not in C
// order, has other elements, or has more bytes than an int64_t can count.
NpyHeader ReadNpyHeader(ByteReader& reader);

// Writes a header of version 1.0, so that the elements start at a multiple of
// 64 bytes, as numpy does.
void WriteNpyHeader(ByteWriter& writer, const NpyHeader& header);

}  // namespace hvdlite::trainers
