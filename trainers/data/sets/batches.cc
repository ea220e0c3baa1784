#include "trainers/data/sets/batches.h"

#include <stdexcept>
#include <utility>

#include "tools/support/input_error.h"

namespace hvdlite::trainers {

Prefetcher<Batch> PrefetchBatches(Dataset& dataset,
                                  std::vector<std::vector<int64_t>> indices,
                                  int64_t epoch, int workers) {
  const auto count = static_cast<int64_t>(indices.size());
  return Prefetcher<Batch>(
      count, workers,
      [&dataset, indices = std::move(indices), epoch](int64_t i) {
        try {
          return dataset.Load(indices[i], epoch);
        } catch (const InputError& error) {
          throw std::runtime_error(error.what());
        }
      });
}

}  // namespace hvdlite::trainers
