// The median of some numbers.
#pragma once

#include <algorithm>
#include <vector>

namespace hvdlite::doctor {

// The upper one of two in the middle; 0 for none.
inline double MedianOf(std::vector<double> values) {
  if (values.empty()) return 0;
  const auto middle =
      values.begin() + static_cast<std::ptrdiff_t>(values.size() / 2);
  std::nth_element(values.begin(), middle, values.end());
  return *middle;
}

}  // namespace hvdlite::doctor
