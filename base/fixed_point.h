// FixedPoint: formats numbers in messages even when memory is short.
#pragma once

#include <cstdio>
#include <string>

namespace hvdlite::base {

// "12.345" for 3 digits, like absl::StrFormat("%.3f", value). But without
// memory this function throws, while Abseil formats in a destructor and thus
// terminates the process.
inline std::string FixedPoint(double value, int digits) {
  char text[400];  // the largest double has 309 digits before the point
  const int size = std::snprintf(text, sizeof(text), "%.*f", digits, value);
  return std::string(text, size < 0 ? 0 : static_cast<size_t>(size));
}

}  // namespace hvdlite::base
