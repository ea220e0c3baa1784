#include "trainers/data/formats/npy_header.h"

#include <array>
#include <span>
#include <string>
#include <string_view>

#include "tools/support/input_error.h"
#include "trainers/data/formats/npy_header_text.h"

namespace hvdlite::trainers {
namespace {

constexpr std::string_view kMagic = "\x93NUMPY";
constexpr size_t kAlignmentBytes = 64;
// The longest of version 1.0; far more than the header of any array of floats.
constexpr size_t kLongestTextBytes = 65535;

std::string ReadText(ByteReader& reader, size_t size_bytes,
                     std::string_view what) {
  std::string text(size_bytes, '\0');
  reader.ReadExactly(std::as_writable_bytes(std::span(text)), what);
  return text;
}

void ReadMagic(ByteReader& reader) {
  if (ReadText(reader, kMagic.size(), "the magic string of an NPY file") !=
      kMagic) {
    throw InputError(reader.name() +
                     " is not an NPY file: expected the bytes \\x93NUMPY at "
                     "offset 0");
  }
}

// The length of the dictionary: two bytes in version 1.0, four in the others.
size_t ReadTextLength(ByteReader& reader) {
  const std::string version = ReadText(reader, 2, "the format version");
  const int major = static_cast<uint8_t>(version[0]);
  const int minor = static_cast<uint8_t>(version[1]);
  if (major < 1 || major > 3 || minor != 0) {
    throw InputError(reader.name() + " has NPY format version " +
                     std::to_string(major) + "." + std::to_string(minor) +
                     " at offset 6; expected 1.0, 2.0 or 3.0");
  }
  const std::string bytes =
      ReadText(reader, major == 1 ? 2 : 4, "the length of the header");
  size_t length_bytes = 0;
  for (size_t i = bytes.size(); i-- > 0;) {  // little-endian
    length_bytes = length_bytes << 8 | static_cast<uint8_t>(bytes[i]);
  }
  if (length_bytes > kLongestTextBytes) {
    throw InputError(reader.name() + " has a header of " +
                     std::to_string(length_bytes) +
                     " bytes, says offset 8; expected at most " +
                     std::to_string(kLongestTextBytes));
  }
  return length_bytes;
}

// `where` ends the messages.
NpyElement ElementOf(const std::string& descr, const std::string& where) {
  if (descr == "<f4") return NpyElement::kFloat32;
  if (descr == "<f8") return NpyElement::kFloat64;
  throw InputError("elements of type '" + descr + "' in " + where +
                   "; expected '<f4' or '<f8' (little-endian floats)");
}

void RequireCountable(const NpyHeader& header, const std::string& where) {
  int64_t size_bytes = ElementBytes(header.element);
  for (const int64_t size : header.shape) {
    if (__builtin_mul_overflow(size_bytes, size, &size_bytes)) {
      throw InputError("the shape in " + where +
                       " has a product that is too large; expected fewer than "
                       "2^63 bytes of elements");
    }
  }
}

}  // namespace

int64_t ElementBytes(NpyElement element) {
  return element == NpyElement::kFloat32 ? 4 : 8;
}

int64_t ElementCount(const std::vector<int64_t>& shape) {
  int64_t count = 1;
  for (const int64_t size : shape) count *= size;
  return count;
}

NpyHeader ReadNpyHeader(ByteReader& reader) {
  ReadMagic(reader);
  const size_t length_bytes = ReadTextLength(reader);
  const int64_t offset_bytes = reader.offset_bytes();
  const NpyHeaderText text =
      ParseNpyHeaderText(ReadText(reader, length_bytes, "the header"),
                         reader.name(), offset_bytes);
  const std::string where = "the header of " + reader.name() + ", at offset " +
                            std::to_string(offset_bytes);
  if (text.fortran_order) {
    throw InputError("Fortran order in " + where +
                     "; expected C order ('fortran_order': False)");
  }
  NpyHeader header{.element = ElementOf(text.descr, where),
                   .shape = text.shape};
  RequireCountable(header, where);
  return header;
}

void WriteNpyHeader(ByteWriter& writer, const NpyHeader& header) {
  std::string text = FormatNpyHeaderText(
      {.descr = header.element == NpyElement::kFloat32 ? "<f4" : "<f8",
       .shape = header.shape});
  const size_t before_bytes = kMagic.size() + 4;  // version and length
  while ((before_bytes + text.size() + 1) % kAlignmentBytes != 0) text += ' ';
  text += '\n';
  const std::array<char, 4> version_and_length = {
      1, 0, static_cast<char>(text.size() & 0xff),
      static_cast<char>(text.size() >> 8)};
  writer.Write(std::as_bytes(std::span(kMagic)));
  writer.Write(std::as_bytes(std::span(version_and_length)));
  writer.Write(std::as_bytes(std::span(text)));
}

}  // namespace hvdlite::trainers
