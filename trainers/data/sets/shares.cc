#include "trainers/data/sets/shares.h"

#include <algorithm>
#include <numeric>

namespace hvdlite::trainers {

std::vector<int64_t> DealByLength(const std::vector<int64_t>& indices,
                                  const std::vector<int64_t>& lengths, int rank,
                                  int world_size) {
  std::vector<size_t> order(indices.size());
  std::iota(order.begin(), order.end(), size_t{0});
  std::stable_sort(order.begin(), order.end(),
                   [&](size_t a, size_t b) { return lengths[a] > lengths[b]; });
  std::vector<int64_t> share;
  const auto ranks = static_cast<size_t>(world_size);
  for (size_t i = 0; i < order.size(); ++i) {
    const size_t turn = i % ranks;
    const bool forward = i / ranks % 2 == 0;
    if ((forward ? turn : ranks - 1 - turn) == static_cast<size_t>(rank)) {
      share.push_back(indices[order[i]]);
    }
  }
  return share;
}

}  // namespace hvdlite::trainers
