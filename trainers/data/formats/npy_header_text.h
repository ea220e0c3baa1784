// The Python dictionary in the header of an NPY file.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

namespace hvdlite::trainers {

struct NpyHeaderText {
  std::string descr;  // such as <f4
  bool fortran_order = false;
  std::vector<int64_t> shape;
};

// Parses {'descr': '<f4', 'fortran_order': False, 'shape': (3, 4), } with its
// keys in any order and white space after it. Integers may end in L, as Python
// 2 wrote them. Throws InputError with `file`, what was found, what was
// expected, and the offset in the file, where the text starts at
// `offset_bytes`.
NpyHeaderText ParseNpyHeaderText(std::string_view text, std::string_view file,
                                 int64_t offset_bytes);

// The text that numpy writes, less the padding at its end.
std::string FormatNpyHeaderText(const NpyHeaderText& header);

}  // namespace hvdlite::trainers
