#include "trainers/data/sets/sampler.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <set>

namespace hvdlite::trainers {
namespace {

SamplerOptions Options(int64_t dataset_size, int64_t batch_size, int rank,
                       int world_size) {
  return {.dataset_size = dataset_size,
          .batch_size = batch_size,
          .rank = rank,
          .world_size = world_size};
}

TEST(EvaluationBatchesTest, EverySampleAppearsOnceWithUnevenShares) {
  for (const int64_t size : {0, 1, 3, 10, 11}) {
    std::multiset<int64_t> seen;
    for (int rank = 0; rank < 4; ++rank) {
      for (const auto& batch : EvaluationBatches(Options(size, 2, rank, 4))) {
        EXPECT_FALSE(batch.empty());
        EXPECT_LE(batch.size(), 2U);
        seen.insert(batch.begin(), batch.end());
      }
    }
    EXPECT_EQ(seen.size(), static_cast<size_t>(size));
    for (int64_t i = 0; i < size; ++i) EXPECT_EQ(seen.count(i), 1U) << i;
  }
}

}  // namespace
}  // namespace hvdlite::trainers
