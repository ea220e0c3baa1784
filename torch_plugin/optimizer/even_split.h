// Splits a list into groups of similar size.
#pragma once

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <numeric>
#include <optional>
#include <vector>

#include "absl/types/span.h"

namespace hvdlite::internal {

// Indices of a list. Each index is in exactly one group.
using GroupedIndices = std::vector<std::vector<size_t>>;

// Splits `sizes` into `groups` consecutive groups, none of them empty, so that
// the largest sum is as small as possible. If there are fewer sizes than
// groups, makes one group per size.
inline GroupedIndices SplitEvenly(absl::Span<const int64_t> sizes,
                                  int64_t groups) {
  if (sizes.empty()) return {};
  const size_t count =
      std::min(sizes.size(), static_cast<size_t>(std::max<int64_t>(groups, 1)));
  // Fills groups one after the other up to `capacity`, so that no later group
  // stays empty. Returns nothing if this takes more than `count` groups.
  const auto fill = [&](int64_t capacity) -> std::optional<GroupedIndices> {
    GroupedIndices result;
    int64_t filled = 0;
    for (size_t i = 0; i < sizes.size(); ++i) {
      const size_t groups_to_come = count - result.size();
      const bool full = result.empty() || filled + sizes[i] > capacity ||
                        sizes.size() - i <= groups_to_come;
      if (full) {
        if (groups_to_come == 0) return std::nullopt;
        result.emplace_back();
        filled = 0;
      }
      if (sizes[i] > capacity) return std::nullopt;
      filled += sizes[i];
      result.back().push_back(i);
    }
    return result;
  };
  // Find the smallest sufficient capacity. The sum of all sizes is sufficient.
  int64_t enough = std::accumulate(sizes.begin(), sizes.end(), int64_t{0});
  int64_t too_small = -1;
  while (enough - too_small > 1) {
    const int64_t middle = too_small + (enough - too_small) / 2;
    (fill(middle).has_value() ? enough : too_small) = middle;
  }
  return fill(enough).value();
}

}  // namespace hvdlite::internal
