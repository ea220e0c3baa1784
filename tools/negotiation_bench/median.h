#pragma once

#include <algorithm>
#include <vector>

namespace hvdlite::negotiation_bench {

// `values` is not empty.
inline double Median(std::vector<double> values) {
  const auto middle =
      values.begin() + static_cast<std::ptrdiff_t>(values.size() / 2);
  std::nth_element(values.begin(), middle, values.end());
  return *middle;
}

}  // namespace hvdlite::negotiation_bench
