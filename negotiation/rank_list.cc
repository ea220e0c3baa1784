#include "negotiation/rank_list.h"

#include <algorithm>

#include "absl/strings/str_cat.h"

namespace hvdlite::negotiation {

std::string FormatRanks(std::vector<int> ranks) {
  std::sort(ranks.begin(), ranks.end());
  std::string text = ranks.size() == 1 ? "rank " : "ranks ";
  for (size_t first = 0; first < ranks.size();) {
    size_t last = first;
    while (last + 1 < ranks.size() && ranks[last + 1] <= ranks[last] + 1) {
      ++last;
    }
    if (first > 0) absl::StrAppend(&text, ", ");
    absl::StrAppend(&text, ranks[first]);
    if (last > first) absl::StrAppend(&text, "-", ranks[last]);
    first = last + 1;
  }
  return text;
}

}  // namespace hvdlite::negotiation
