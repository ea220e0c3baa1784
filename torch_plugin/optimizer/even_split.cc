#include "torch_plugin/optimizer/even_split.h"

#include <algorithm>
#include <numeric>
#include <optional>

namespace hvdlite::internal {
namespace {

// Fills groups one after the other up to `capacity`, so that no later one stays
// empty. Nothing if that takes more than `groups`.
std::optional<GroupedIndices> Fill(absl::Span<const int64_t> sizes,
                                   size_t groups, int64_t capacity) {
  GroupedIndices result;
  int64_t filled = 0;
  for (size_t i = 0; i < sizes.size(); ++i) {
    const size_t groups_to_come = groups - result.size();
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
}

}  // namespace

GroupedIndices SplitEvenly(absl::Span<const int64_t> sizes, int64_t groups) {
  if (sizes.empty()) return {};
  const size_t count =
      std::min(sizes.size(), static_cast<size_t>(std::max<int64_t>(groups, 1)));
  // The smallest capacity that suffices; with that of all in one it does.
  int64_t enough = std::accumulate(sizes.begin(), sizes.end(), int64_t{0});
  int64_t too_small = -1;
  while (enough - too_small > 1) {
    const int64_t middle = too_small + (enough - too_small) / 2;
    (Fill(sizes, count, middle).has_value() ? enough : too_small) = middle;
  }
  return Fill(sizes, count, enough).value();
}

}  // namespace hvdlite::internal
