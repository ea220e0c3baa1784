#include "trainers/data/formats/npy_header_text.h"

#include <charconv>
#include <set>
#include <system_error>

#include "tools/support/input_error.h"

namespace hvdlite::trainers {
namespace {

// A recursive-descent parser; each function consumes what it is named after.
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
    throw InputError(
        std::string(file_) + " has a malformed header at offset " +
        std::to_string(offset_bytes_ + static_cast<int64_t>(at)) + ": found " +
        (found.empty() ? "its end" : "\"" + std::string(found) + "\"") +
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

  // No string of a valid header has an escape sequence.
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

}  // namespace

NpyHeaderText ParseNpyHeaderText(std::string_view text, std::string_view file,
                                 int64_t offset_bytes) {
  return Parser(text, file, offset_bytes).Header();
}

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

}  // namespace hvdlite::trainers
