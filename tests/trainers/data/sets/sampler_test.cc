#include "trainers/data/sets/sampler.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <set>

#include "tools/support/input_error.h"

namespace hvdlite::trainers {
namespace {

SamplerOptions Options(int64_t dataset_size, int64_t batch_size, int rank,
                       int world_size, uint64_t seed = 1) {
  return {.dataset_size = dataset_size,
          .batch_size = batch_size,
          .rank = rank,
          .world_size = world_size,
          .seed = seed};
}

// The samples of one step, over all ranks, in rank order.
std::vector<int64_t> WorldBatch(int64_t dataset_size, int64_t batch_size,
                                int world_size, int64_t epoch, int64_t step,
                                uint64_t seed = 1) {
  std::vector<int64_t> samples;
  for (int rank = 0; rank < world_size; ++rank) {
    TrainingSampler sampler(
        Options(dataset_size, batch_size, rank, world_size, seed));
    const std::vector<int64_t> batch = sampler.Batch(epoch, step);
    samples.insert(samples.end(), batch.begin(), batch.end());
  }
  return samples;
}

TEST(TrainingSamplerTest, EpochCoversEverySampleOnceOverTheRanks) {
  std::multiset<int64_t> seen;
  for (int rank = 0; rank < 3; ++rank) {
    TrainingSampler sampler(Options(24, 2, rank, 3));
    ASSERT_EQ(sampler.steps_per_epoch(), 4);
    for (int64_t step = 0; step < 4; ++step) {
      for (const int64_t index : sampler.Batch(/*epoch=*/0, step)) {
        seen.insert(index);
      }
    }
  }
  EXPECT_EQ(seen.size(), 24U);
  for (int64_t i = 0; i < 24; ++i) EXPECT_EQ(seen.count(i), 1U) << i;
}

TEST(TrainingSamplerTest, DropsTheRestSoThatAllRanksHaveTheSameFullBatches) {
  std::set<int64_t> seen;
  for (int rank = 0; rank < 3; ++rank) {
    TrainingSampler sampler(Options(29, 2, rank, 3));
    ASSERT_EQ(sampler.steps_per_epoch(), 4);
    for (int64_t step = 0; step < 4; ++step) {
      const std::vector<int64_t> batch = sampler.Batch(/*epoch=*/5, step);
      EXPECT_EQ(batch.size(), 2U);
      for (const int64_t index : batch) {
        EXPECT_TRUE(seen.insert(index).second) << index << " came twice";
        EXPECT_LT(index, 29);
      }
    }
  }
  EXPECT_EQ(seen.size(), 24U);
}

TEST(TrainingSamplerTest, SamplesOfAStepDoNotDependOnTheNumberOfRanks) {
  for (int64_t step = 0; step < 3; ++step) {
    const std::vector<int64_t> expected = WorldBatch(50, 16, 1, 2, step);
    EXPECT_EQ(WorldBatch(50, 8, 2, 2, step), expected);
    EXPECT_EQ(WorldBatch(50, 4, 4, 2, step), expected);
  }
}

TEST(TrainingSamplerTest, OrderDependsOnSeedAndEpoch) {
  const std::vector<int64_t> first = WorldBatch(100, 100, 1, 0, 0);
  EXPECT_EQ(WorldBatch(100, 100, 1, 0, 0), first);
  EXPECT_NE(WorldBatch(100, 100, 1, 1, 0), first);
  EXPECT_NE(WorldBatch(100, 100, 1, 0, 0, /*seed=*/2), first);
  EXPECT_FALSE(std::is_sorted(first.begin(), first.end()));
}

TEST(TrainingSamplerTest, BatchesAreThoseOfTheSteps) {
  TrainingSampler sampler(Options(40, 4, 1, 2));
  EXPECT_EQ(sampler.Batches(/*epoch=*/3, /*first=*/1, /*last=*/3),
            (std::vector<std::vector<int64_t>>{sampler.Batch(3, 1),
                                               sampler.Batch(3, 2)}));
  EXPECT_TRUE(sampler.Batches(3, 2, 2).empty());
}

TEST(TrainingSamplerTest, ReturnsToAnEarlierEpoch) {
  TrainingSampler sampler(Options(40, 4, 0, 2));
  const std::vector<int64_t> batch = sampler.Batch(0, 3);
  sampler.Batch(1, 0);
  EXPECT_EQ(sampler.Batch(0, 3), batch);
}

TEST(TrainingSamplerTest, TooSmallADatasetIsAnErrorThatSaysWhatToDo) {
  EXPECT_THAT([] { TrainingSampler sampler(Options(7, 4, 0, 2)); },
              testing::ThrowsMessage<support::InputError>(
                  testing::AllOf(testing::HasSubstr("7 samples"),
                                 testing::HasSubstr("--batch-size"))));
}

TEST(EvaluationBatchesTest, EverySampleComesOnceWithUnevenShares) {
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
