// Ranks hold their reports back until they are worth a bucket or a thread
// waits.
#include <random>
#include <string>
#include <utility>
#include <vector>

#include "absl/strings/str_cat.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "negotiation/protocol/negotiator.h"
#include "tests/testing/fakes/negotiation_requests.h"
#include "tests/testing/worlds/sim_world.h"

namespace hvdlite::negotiation {
namespace {

using hvdlite::testing::Gradient;
using hvdlite::testing::SimWorld;
using hvdlite::testing::SmallBuckets;
using hvdlite::testing::WorldShape;
using ::testing::ElementsAre;
using ::testing::SizeIs;

class HeldReportsTest : public ::testing::TestWithParam<WorldShape> {
 protected:
  // After this, the names have ids.
  static void Register(SimWorld& world, const std::vector<Request>& requests) {
    for (int i = 0; i < 3; ++i) {
      for (const Request& request : requests) world.Run(request);
    }
  }
};

TEST_P(HeldReportsTest, NothingIsSentUntilAnyRankWaits) {
  SimWorld world(GetParam(), SmallBuckets());
  Register(world, {Gradient("a")});
  for (int waiting = 0; waiting < world.size(); ++waiting) {
    const int64_t sent = world.bytes_sent;
    world.SubmitEverywhere(Gradient("a"));
    world.Settle();
    EXPECT_EQ(world.bytes_sent, sent);
    ASSERT_TRUE(world.IsPending(0, "a"));
    world.MarkUrgent(waiting, "a");
    world.Settle();
    for (int rank = 0; rank < world.size(); ++rank) {
      EXPECT_FALSE(world.IsPending(rank, "a")) << rank;
      EXPECT_FALSE(world[rank].is_awaited()) << rank;
    }
  }
}

TEST_P(HeldReportsTest, LateRankIsAskedBeforeItSubmits) {
  SimWorld world(GetParam(), SmallBuckets());
  Register(world, {Gradient("a")});
  for (int late = 0; late < world.size(); ++late) {
    for (int rank = 0; rank < world.size(); ++rank) {
      if (rank != late) world.Submit(rank, Gradient("a"));
    }
    world.MarkUrgent(late == 0 ? 1 : 0, "a");
    world.Settle();
    EXPECT_TRUE(world[late].is_awaited()) << late;
    world.Submit(late, Gradient("a"));
    world.Settle();
    EXPECT_FALSE(world.IsPending(0, "a")) << late;
  }
}

TEST_P(HeldReportsTest, ReportsWorthABucketAreSentWithoutAWaiter) {
  const std::vector<Request> halves = {Gradient("a", 128), Gradient("b", 128)};
  SimWorld world(GetParam(), SmallBuckets());
  Register(world, halves);
  const int64_t sent = world.bytes_sent;
  world.SubmitEverywhere(halves[0]);
  world.Settle();
  EXPECT_EQ(world.bytes_sent, sent);
  world.SubmitEverywhere(halves[1]);
  world.Settle();
  for (int rank = 0; rank < world.size(); ++rank) {
    EXPECT_THAT(world.done(rank).back().tensors, ElementsAre("a", "b"));
  }
}

TEST_P(HeldReportsTest, RankMayStillWaitAfterADecision) {
  SimWorld world(GetParam(), SmallBuckets());
  Register(world, {Gradient("a"), Gradient("b")});
  const int last = world.size() - 1;
  world.SubmitEverywhere(Gradient("a"));
  for (int rank = 0; rank < last; ++rank) world.Submit(rank, Gradient("b"));
  world.MarkUrgent(0, "b");
  world.MarkUrgent(0, "a");
  world.Settle();
  EXPECT_FALSE(world.IsPending(0, "a"));
  EXPECT_TRUE(world[last].is_awaited());
  world.Submit(last, Gradient("b"));
  world.Settle();
  EXPECT_FALSE(world.IsPending(0, "b"));
}

TEST_P(HeldReportsTest, ContainTheTimeOfTheSubmissionNotOfTheQuestion) {
  SimWorld world(GetParam(), SmallBuckets());
  Register(world, {Gradient("a")});
  for (const absl::Duration late :
       {absl::Milliseconds(40), absl::Hours(2), absl::Hours(24 * 10)}) {
    for (int last = 0; last < world.size(); ++last) {
      for (int rank = 0; rank < world.size(); ++rank) {
        if (rank != last) world.Submit(rank, Gradient("a"));
      }
      world.Advance(late);
      world.Settle();  // ranks report that it takes long
      world.Submit(last, Gradient("a"));
      world.Advance(absl::Milliseconds(100));
      world.MarkUrgent(0, "a");
      world.Settle();
      const auto& done = world.done(0).back();
      EXPECT_THAT(done.last_ranks, ElementsAre(last));
      ASSERT_THAT(done.lateness_us, SizeIs(1));
      const int64_t late_us = absl::ToInt64Microseconds(late);
      // Of the ranks below one another, only the last one's time is sent.
      EXPECT_LE(done.lateness_us.front(), late_us + 200);
      if (GetParam().ranks == 2) {
        EXPECT_NEAR(done.lateness_us.front(), late_us, 200);
      }
    }
  }
}

TEST_P(HeldReportsTest, OperationsOfARemovedSetAreNotAwaited) {
  SimWorld world(GetParam(), SmallBuckets());
  const int last = world.size() - 1;
  const ProcessSetId set = world.AddProcessSet({0, last});
  world.SubmitUrgently(0, Gradient("a", 16, set));
  world.Settle();
  EXPECT_TRUE(world[last].is_awaited());
  world.SubmitRemoval(set);
  world.Settle();
  EXPECT_FALSE(world.IsPending(0, "a"));
  for (int rank = 0; rank < world.size(); ++rank) {
    EXPECT_FALSE(world[rank].is_awaited()) << rank;
  }
}

// With sets that ranks outside relay for, absent gradients, and ranks that
// join, an operation that a rank waits for is always done in the end.
TEST_P(HeldReportsTest, AwaitedOperationsAreAlwaysDone) {
  for (uint32_t seed = 0; seed < 8; ++seed) {
    SCOPED_TRACE(seed);
    std::mt19937 random(seed);
    SimWorld world(GetParam(), SmallBuckets());
    const int size = world.size();
    std::vector<std::vector<int>> members(3);
    std::vector<ProcessSetId> sets = {0};
    for (int rank = 0; rank < size; ++rank) {
      members[0].push_back(rank);
      if (rank % 2 == size % 2) members[1].push_back(rank);
      if (rank >= size / 2) members[2].push_back(rank);
    }
    for (int i : {1, 2}) sets.push_back(world.AddProcessSet(members[i]));
    for (int step = 0; step < 25; ++step) {
      std::vector<SimWorld::Submission> all;
      for (int name = 0; name < 9; ++name) {
        if (random() % 3 == 0) continue;
        const int set = name % 3;
        const Request request =
            Gradient(absl::StrCat("t", name), 8 + 20 * name, sets[set]);
        const size_t waits = random() % members[set].size();
        for (size_t i = 0; i < members[set].size(); ++i) {
          all.push_back({.rank = members[set][i],
                         .request = request,
                         .waits = i == waits,
                         .absent = random() % 4 == 0});
        }
      }
      world.RunShuffled(std::move(all), random);
    }
    // All ranks but one join; what it waits for is done without them.
    const int alone = static_cast<int>(random() % size);
    for (int rank = 0; rank < size; ++rank) {
      if (rank != alone) world.Join(rank);
      if (random() % 2 == 0) world.Step(random);
    }
    world.SubmitUrgently(alone, Gradient("t0", 8));
    world.Settle(random);
    EXPECT_FALSE(world.IsPending(alone, "t0"));
  }
}

INSTANTIATE_TEST_SUITE_P(
    Worlds, HeldReportsTest,
    ::testing::Values(WorldShape{2, 1, 8}, WorldShape{5, 1, 1},
                      WorldShape{4, 2, 2}, WorldShape{16, 4, 2},
                      WorldShape{33, 8, 3}, WorldShape{20, 1, 8}),
    [](const auto& info) { return NameOf(info.param); });

}  // namespace
}  // namespace hvdlite::negotiation
