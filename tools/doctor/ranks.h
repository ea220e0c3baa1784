// Lists of ranks.
#pragma once

#include <cstddef>
#include <numeric>
#include <vector>

namespace hvdlite::doctor {

// 0, 1, ..., size - 1.
inline std::vector<int> RanksUpTo(size_t size) {
  std::vector<int> ranks(size);
  std::iota(ranks.begin(), ranks.end(), 0);
  return ranks;
}

}  // namespace hvdlite::doctor
