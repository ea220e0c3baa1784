#include "trainers/data/sets/sampler.h"

#include <algorithm>
#include <numeric>

namespace hvdlite::trainers {

std::vector<std::vector<int64_t>> EvaluationBatches(
    const SamplerOptions& options) {
  std::vector<std::vector<int64_t>> batches;
  for (int64_t index = options.rank; index < options.dataset_size;
       index += options.world_size) {
    if (batches.empty() ||
        static_cast<int64_t>(batches.back().size()) == options.batch_size) {
      batches.emplace_back();
    }
    batches.back().push_back(index);
  }
  return batches;
}

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
