#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <hvdlite/sampler.h>

#include <algorithm>
#include <map>
#include <random>
#include <string>

#include "base/keyed_random.h"
#include "tests/torch_plugin/error_text.h"

namespace hvdlite {
namespace {

using ::testing::HasSubstr;

using Samples = std::vector<size_t>;

// The ranks of a world that takes some steps of an epoch. Appends their samples
// to `seen` in rank order. Stops at the end of the epoch.
struct World {
  World(const DistributedSampler& sampler, int size)
      : ranks(static_cast<size_t>(size), sampler) {}

  bool Step(Samples& seen, int64_t batch_size) {
    const int size = static_cast<int>(ranks.size());
    size_t least = SIZE_MAX;
    size_t most = 0;
    int ended = 0;
    int64_t step = 0;
    for (int rank = 0; rank < size; ++rank) {
      const auto part = ranks[static_cast<size_t>(rank)].next(rank, size);
      if (!part) {
        ++ended;
        continue;
      }
      seen.insert(seen.end(), part->begin(), part->end());
      step += static_cast<int64_t>(part->size());
      least = std::min(least, part->size());
      most = std::max(most, part->size());
    }
    if (ended > 0) {
      EXPECT_EQ(ended, size) << "some ranks have ended before others";
      return false;
    }
    EXPECT_LE(most - least, 1U);
    EXPECT_LE(static_cast<int64_t>(most), batch_size);
    for (const DistributedSampler& sampler : ranks) {
      EXPECT_EQ(sampler.taken(), step);
      EXPECT_EQ(sampler.position(), ranks[0].position());
    }
    return true;
  }

  std::vector<DistributedSampler> ranks;
};

// The order of an epoch in the first version of the trainers.
Samples OrderOf(size_t size, uint64_t seed, uint64_t epoch) {
  Samples order(size);
  for (size_t i = 0; i < size; ++i) order[i] = i;
  base::KeyedRandom random{seed, epoch};
  for (size_t i = size; i > 1; --i) {
    std::swap(order[i - 1], order[random.Below(i)]);
  }
  return order;
}

TEST(SamplerTest, EverySampleComesOnceInTheSameOrderForAllWorlds) {
  std::mt19937 random(7);  // NOLINT: the same worlds in every run
  for (int trial = 0; trial < 2000; ++trial) {
    const int64_t size = 1 + static_cast<int64_t>(random() % 60);
    const int64_t batch = 1 + static_cast<int64_t>(random() % 9);
    const auto epoch = static_cast<int64_t>(random() % 3);
    DistributedSampler sampler(size, batch, /*seed=*/5);
    sampler.set_epoch(epoch);
    Samples seen;
    std::string worlds;
    for (bool more = true; more;) {
      const int ranks = 1 + static_cast<int>(random() % 5);
      worlds += " " + std::to_string(ranks);
      World world(sampler, ranks);
      const auto steps = static_cast<int>(random() % 4);
      for (int step = 0; step < steps && more; ++step) {
        more = world.Step(seen, batch);
      }
      // A restart on other ranks knows nothing else.
      sampler = DistributedSampler(size, batch, /*seed=*/5);
      sampler.resume(world.ranks[0].epoch(), world.ranks[0].position());
    }
    ASSERT_EQ(seen,
              OrderOf(static_cast<size_t>(size), 5, static_cast<size_t>(epoch)))
        << size << " samples, batch " << batch << ", worlds" << worlds;
  }
}

TEST(SamplerTest, FullBatchesAreDistributedInRankOrder) {
  const Samples order = OrderOf(24, 1, 0);
  for (int rank = 0; rank < 3; ++rank) {
    DistributedSampler sampler(24, 2, 1);
    for (int step = 0; step < 4; ++step) {
      const auto first = order.begin() + (step * 3 + rank) * 2;
      EXPECT_EQ(sampler.next(rank, 3), Samples(first, first + 2));
    }
    EXPECT_FALSE(sampler.next(rank, 3));
  }
}

TEST(SamplerTest, PartialStepsHaveNearlyEqualSizes) {
  DistributedSampler sampler(29, 4, 1);
  std::vector<int64_t> taken;
  while (sampler.next(1, 2)) taken.push_back(sampler.taken());
  EXPECT_EQ(taken, (std::vector<int64_t>{8, 7, 7, 7}));
}

TEST(SamplerTest, RanksWithoutASampleGetAnEmptyPart) {
  for (int rank = 0; rank < 5; ++rank) {
    DistributedSampler sampler(3, 2, 1);
    const auto part = sampler.next(rank, 5);
    ASSERT_TRUE(part);
    EXPECT_EQ(part->size(), rank < 3 ? 1U : 0U);
    EXPECT_FALSE(sampler.next(rank, 5));
    EXPECT_FALSE(sampler.next(rank, 5));
  }
}

TEST(SamplerTest, BatchOfAllRanksDoesNotDependOnTheirNumber) {
  Samples alone;
  DistributedSampler one(20, 6, 3, BatchOf::AllRanks);
  while (const auto part = one.next(0, 1)) {
    EXPECT_EQ(one.taken(), 5);
    alone.insert(alone.end(), part->begin(), part->end());
    Samples together;
    for (int rank = 0; rank < 4; ++rank) {
      DistributedSampler sampler(20, 6, 3, BatchOf::AllRanks);
      sampler.resume(0, one.position() - one.taken());
      const auto own = sampler.next(rank, 4);
      together.insert(together.end(), own->begin(), own->end());
    }
    EXPECT_EQ(together, *part);
  }
  EXPECT_EQ(alone, OrderOf(20, 3, 0));
}

TEST(SamplerTest, SetEpochContinuesThePresentEpochOrBeginsAnother) {
  DistributedSampler sampler(10, 2, 1);
  sampler.set_epoch(1);
  const auto first = sampler.next(0, 1);
  sampler.set_epoch(1);
  EXPECT_EQ(sampler.position(), 2);
  EXPECT_NE(sampler.next(0, 1), first);
  sampler.set_epoch(2);
  EXPECT_EQ(sampler.position(), 0);
  EXPECT_NE(sampler.next(0, 1), first);
  sampler.set_epoch(1);
  EXPECT_EQ(sampler.next(0, 1), first);
  EXPECT_NE(DistributedSampler(10, 2, 2).next(0, 1),
            DistributedSampler(10, 2, 1).next(0, 1));
}

TEST(SamplerTest, InvalidArgumentsAreErrorsWithReasons) {
  EXPECT_THAT(ErrorText([] { DistributedSampler(0, 2, 1); }),
              HasSubstr("no samples (dataset_size 0)"));
  EXPECT_THAT(ErrorText([] { DistributedSampler(3, 0, 1); }),
              HasSubstr("batch_size 0"));
  DistributedSampler sampler(3, 1, 1);
  EXPECT_THAT(ErrorText([&] { sampler.resume(0, 4); }),
              HasSubstr("after 4 samples; the data set has 3"));
  EXPECT_THAT(ErrorText([&] { sampler.set_epoch(-1); }),
              HasSubstr("cannot continue epoch -1"));
  EXPECT_THAT(ErrorText([&] { sampler.next(2, 2); }),
              HasSubstr("rank 2 does not exist among 2 ranks"));
  EXPECT_THAT(ErrorText([&] { sampler.next(); }), HasSubstr("init()"));
}

}  // namespace
}  // namespace hvdlite
