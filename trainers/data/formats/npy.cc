#include "trainers/data/formats/npy.h"

#include <algorithm>
#include <array>
#include <bit>
#include <charconv>
#include <cstdint>
#include <set>
#include <span>
#include <string>
#include <string_view>
#include <system_error>
#include <vector>

#include "absl/strings/str_cat.h"
#include "support/input_error.h"

namespace hvdlite::trainers {
namespace {

static_assert(std::endian::native == std::endian::little,
              "elements are read and written as they are in memory");

// The Python dictionary in the header.
struct NpyHeaderText {
  std::string descr;  // for example "<f4"
  bool fortran_order = false;
  std::vector<int64_t> shape;
};

// A recursive-descent parser. Each function parses what its name says.
class Parser {
 public:
  Parser(std::string_view text, std::string_view file, int64_t offset_bytes)
      : text_(text), file_(file), offset_bytes_(offset_bytes) {}

  NpyHeaderText Header() {
    NpyHeaderText header;
    std::set<std::string> keys;
    Token('{');
    while (!TryToken('}')) {
      SkipSpace();
      const size_t start = at_;
      const std::string key = String();
      if (!keys.insert(key).second) Fail(start, "each key once");
      Token(':');
      if (key == "descr") {
        header.descr = String();
      } else if (key == "fortran_order") {
        header.fortran_order = Boolean();
      } else if (key == "shape") {
        header.shape = Shape();
      } else {
        Fail(start, "'descr', 'fortran_order' or 'shape'");
      }
      if (!TryToken(',')) {
        Token('}');
        break;
      }
    }
    SkipSpace();
    if (at_ != text_.size()) Fail(at_, "nothing after '}'");
    if (keys.size() != 3) {
      Fail(0, "all of 'descr', 'fortran_order' and 'shape'");
    }
    return header;
  }

 private:
  // Reports the text at position `at`.
  [[noreturn]] void Fail(size_t at, const std::string& expected) const {
    constexpr size_t kShownBytes = 20;
    const std::string_view found = text_.substr(at, kShownBytes);
    throw support::InputError(
        std::string(file_) + " has a malformed header at offset " +
        std::to_string(offset_bytes_ + static_cast<int64_t>(at)) + ": found " +
        (found.empty() ? "its end"
                       : absl::StrCat("\"", std::string(found), "\"")) +
        ", expected " + expected);
  }

  void SkipSpace() {
    while (at_ < text_.size() && (text_[at_] == ' ' || text_[at_] == '\n')) {
      ++at_;
    }
  }

  bool TryToken(char token) {
    SkipSpace();
    if (at_ == text_.size() || text_[at_] != token) return false;
    ++at_;
    return true;
  }

  void Token(char token) {
    if (!TryToken(token)) Fail(at_, std::string("'") + token + "'");
  }

  // Strings of a valid header have no escape sequences.
  std::string String() {
    SkipSpace();
    const std::string_view rest = text_.substr(at_);
    if (!rest.starts_with('\'') && !rest.starts_with('"')) {
      Fail(at_, "a string in quotes");
    }
    const size_t end = rest.find(rest[0], 1);
    if (end == std::string_view::npos) Fail(at_, "a closing quote");
    at_ += end + 1;
    return std::string(rest.substr(1, end - 1));
  }

  bool Boolean() {
    SkipSpace();
    for (const bool value : {false, true}) {
      const std::string_view word = value ? "True" : "False";
      if (!text_.substr(at_).starts_with(word)) continue;
      at_ += word.size();
      return value;
    }
    Fail(at_, "True or False");
  }

  std::vector<int64_t> Shape() {
    std::vector<int64_t> shape;
    Token('(');
    while (!TryToken(')')) {
      shape.push_back(Integer());
      if (TryToken(',')) continue;
      // In Python (3) is an integer, (3,) a tuple.
      if (shape.size() == 1) Fail(at_, "','");
      Token(')');
      break;
    }
    return shape;
  }

  int64_t Integer() {
    SkipSpace();
    int64_t value = 0;
    const char* const begin = text_.data() + at_;
    const auto [end, error] =
        std::from_chars(begin, text_.data() + text_.size(), value);
    if (error != std::errc() || value < 0) {
      Fail(at_, "an integer from 0 to 2^63 - 1");
    }
    at_ += static_cast<size_t>(end - begin);
    if (text_.substr(at_).starts_with('L')) ++at_;
    return value;
  }

  const std::string_view text_;
  const std::string_view file_;
  const int64_t offset_bytes_;
  size_t at_ = 0;
};

// Parses {'descr': '<f4', 'fortran_order': False, 'shape': (3, 4), } with its
// keys in any order and trailing white space. Integers may end in L, as Python
// 2 wrote them. On an error throws an InputError with `file`, the text found,
// the expected text, and the offset in the file; the header's text starts at
// `offset_bytes`.
NpyHeaderText ParseNpyHeaderText(std::string_view text, std::string_view file,
                                 int64_t offset_bytes) {
  return Parser(text, file, offset_bytes).Header();
}

// The text that numpy writes, without the padding at its end.
std::string FormatNpyHeaderText(const NpyHeaderText& header) {
  std::string shape;
  for (const int64_t size : header.shape) shape += std::to_string(size) + ", ";
  if (header.shape.size() == 1) {
    shape.pop_back();  // (3,)
  } else if (!header.shape.empty()) {
    shape.resize(shape.size() - 2);  // (3, 4)
  }
  return "{'descr': '" + header.descr +
         "', 'fortran_order': " + (header.fortran_order ? "True" : "False") +
         ", 'shape': (" + shape + "), }";
}

constexpr std::string_view kMagic = "\x93NUMPY";
constexpr size_t kAlignmentBytes = 64;
// The maximum of version 1.0, far more than any array of floats needs.
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
    throw support::InputError(
        reader.name() +
        " is not an NPY file: expected the bytes \\x93NUMPY at "
        "offset 0");
  }
}

// Reads the length of the dictionary: two bytes in version 1.0, else four
// bytes.
size_t ReadTextLength(ByteReader& reader) {
  const std::string version = ReadText(reader, 2, "the format version");
  const int major = static_cast<uint8_t>(version[0]);
  const int minor = static_cast<uint8_t>(version[1]);
  if (major < 1 || major > 3 || minor != 0) {
    throw support::InputError(
        reader.name() + " has NPY format version " + std::to_string(major) +
        "." + std::to_string(minor) + " at offset 6; expected 1.0, 2.0 or 3.0");
  }
  const std::string bytes =
      ReadText(reader, major == 1 ? 2 : 4, "the length of the header");
  size_t length_bytes = 0;
  for (size_t i = bytes.size(); i-- > 0;) {  // little-endian
    length_bytes = length_bytes << 8 | static_cast<uint8_t>(bytes[i]);
  }
  if (length_bytes > kLongestTextBytes) {
    throw support::InputError(
        reader.name() + " has a header of " + std::to_string(length_bytes) +
        " bytes according to offset 8; expected at most " +
        std::to_string(kLongestTextBytes));
  }
  return length_bytes;
}

// Returns the type of `descr`. Error messages contain `where`.
NpyElement ElementOf(const std::string& descr, const std::string& where) {
  if (descr == "<f4") return NpyElement::kFloat32;
  if (descr == "<f8") return NpyElement::kFloat64;
  throw support::InputError("elements of type '" + descr + "' in " + where +
                            "; expected '<f4' or '<f8' (little-endian floats)");
}

void RequireCountable(const NpyHeader& header, const std::string& where) {
  int64_t size_bytes = ElementBytes(header.element);
  for (const int64_t size : header.shape) {
    if (__builtin_mul_overflow(size_bytes, size, &size_bytes)) {
      throw support::InputError(
          "the shape in " + where +
          " describes too many elements; expected fewer than "
          "2^63 bytes of elements");
    }
  }
}

// Reads the header of format version 1.0, 2.0 or 3.0 from the start of a file,
// up to the first element. Throws an InputError with file and offset if the
// header is missing, truncated or malformed. Also throws it if the array is not
// in C order, has other elements, or has more bytes than an int64_t can count.
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
    throw support::InputError("Fortran order in " + where +
                              "; expected C order ('fortran_order': False)");
  }
  NpyHeader header{.element = ElementOf(text.descr, where),
                   .shape = text.shape};
  RequireCountable(header, where);
  return header;
}

// Writes a header of version 1.0. As in numpy, the elements start at a multiple
// of 64 bytes.
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

}  // namespace

int64_t ElementBytes(NpyElement element) {
  return element == NpyElement::kFloat32 ? 4 : 8;
}

int64_t ElementCount(const std::vector<int64_t>& shape) {
  int64_t count = 1;
  for (const int64_t size : shape) count *= size;
  return count;
}

NpyReader::NpyReader(const std::filesystem::path& file)
    : reader_(file),
      header_(ReadNpyHeader(reader_)),
      remaining_(ElementCount(header_.shape)) {
  if (remaining_ == 0) reader_.ExpectEnd();
}

void NpyReader::Read(std::span<float> values, std::string_view what) {
  if (header_.element == NpyElement::kFloat32) {
    reader_.ReadExactly(std::as_writable_bytes(values), what);
  } else {
    doubles_.resize(values.size());
    reader_.ReadExactly(std::as_writable_bytes(std::span(doubles_)), what);
    std::transform(doubles_.begin(), doubles_.end(), values.begin(),
                   [](double value) { return static_cast<float>(value); });
  }
  remaining_ -= static_cast<int64_t>(values.size());
  if (remaining_ == 0 && !values.empty()) reader_.ExpectEnd();
}

NpyWriter::NpyWriter(const std::filesystem::path& file, const NpyHeader& header)
    : writer_(file), element_(header.element) {
  WriteNpyHeader(writer_, header);
}

void NpyWriter::Write(std::span<const float> values) {
  if (element_ == NpyElement::kFloat32) {
    writer_.Write(std::as_bytes(values));
  } else {
    const std::vector<double> doubles(values.begin(), values.end());
    writer_.Write(std::as_bytes(std::span(doubles)));
  }
}

void NpyWriter::Close() { writer_.Close(); }

}  // namespace hvdlite::trainers
