// Batches of a dataset, loaded while others are computed with.
#pragma once

#include <cstdint>
#include <vector>

#include "trainers/data/sets/dataset.h"
#include "trainers/data/sets/prefetcher.h"

namespace hvdlite::trainers {

// Loads the batches with these indices in order, as they are seen in that
// epoch, by `workers` threads (see Prefetcher). `dataset` must outlive the
// result. An InputError of Load becomes a std::runtime_error: it is this rank's
// alone, and the others have gone on.
Prefetcher<Batch> PrefetchBatches(Dataset& dataset,
                                  std::vector<std::vector<int64_t>> indices,
                                  int64_t epoch, int workers);

}  // namespace hvdlite::trainers
