// Ranks hold their reports back until they are worth a batch or somebody waits.
#include <algorithm>
#include <random>
#include <string>
#include <vector>

#include "absl/strings/str_cat.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "negotiation/protocol/negotiator.h"
#include "tests/testing/worlds/lockstep_world.h"

namespace hvdlite::negotiation {
namespace {

using hvdlite::testing::LockstepWorld;
using ::testing::ElementsAre;
using ::testing::SizeIs;

constexpr int64_t kMinBatchBytes = 1024;

struct HeldWorld {
  int ranks;
  int ranks_per_host;
  int arity;
};

Request Held(const std::string& name, int64_t elements = 8) {
  Request request;
  request.name = name;
  request.tensors = {{.shape = {elements}}};
  return request;
}

class HeldReportsTest : public ::testing::TestWithParam<HeldWorld> {
 protected:
  // A world in which the names have ids.
  LockstepWorld Make(const std::vector<Request>& requests) {
    Negotiator::Options options;
    options.tree_arity = GetParam().arity;
    options.min_batch_bytes = kMinBatchBytes;
    LockstepWorld world(GetParam().ranks, options, GetParam().ranks_per_host);
    for (int i = 0; i < 3; ++i) {
      for (const Request& request : requests) {
        world.SubmitEverywhere(request);
        world.MarkUrgent(0, request.name);
        world.Settle();
      }
    }
    return world;
  }
};

TEST_P(HeldReportsTest, NothingIsSentUntilSomebodyWaitsWhoeverThatIs) {
  LockstepWorld world = Make({Held("a")});
  for (int waiting = 0; waiting < world.size(); ++waiting) {
    const int64_t sent = world.bytes_sent;
    world.SubmitEverywhere(Held("a"));
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

TEST_P(HeldReportsTest, WhoeverSubmitsLateIsAskedBefore) {
  LockstepWorld world = Make({Held("a")});
  for (int late = 0; late < world.size(); ++late) {
    for (int rank = 0; rank < world.size(); ++rank) {
      if (rank != late) world.Submit(rank, Held("a"));
    }
    world.MarkUrgent(late == 0 ? 1 : 0, "a");
    world.Settle();
    EXPECT_TRUE(world[late].is_awaited()) << late;
    world.Submit(late, Held("a"));
    world.Settle();
    EXPECT_FALSE(world.IsPending(0, "a")) << late;
  }
}

TEST_P(HeldReportsTest, WhatIsWorthABatchIsReportedWithoutAnybodyWaiting) {
  const std::vector<Request> halves = {Held("a", 128), Held("b", 128)};
  LockstepWorld world = Make(halves);
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

TEST_P(HeldReportsTest, SomebodyMayStillWaitAfterADecision) {
  LockstepWorld world = Make({Held("a"), Held("b")});
  const int last = world.size() - 1;
  world.SubmitEverywhere(Held("a"));
  for (int rank = 0; rank < last; ++rank) world.Submit(rank, Held("b"));
  world.MarkUrgent(0, "b");
  world.MarkUrgent(0, "a");
  world.Settle();
  EXPECT_FALSE(world.IsPending(0, "a"));
  EXPECT_TRUE(world[last].is_awaited());
  world.Submit(last, Held("b"));
  world.Settle();
  EXPECT_FALSE(world.IsPending(0, "b"));
}

TEST_P(HeldReportsTest, TellWhenTheLastRankSubmittedNotWhenItWasAsked) {
  LockstepWorld world = Make({Held("a")});
  for (int last = 0; last < world.size(); ++last) {
    for (int rank = 0; rank < world.size(); ++rank) {
      if (rank != last) world.Submit(rank, Held("a"));
    }
    world.Advance(absl::Milliseconds(40));
    world.Submit(last, Held("a"));
    world.Advance(absl::Milliseconds(100));
    world.MarkUrgent(0, "a");
    world.Settle();
    const auto& done = world.done(0).back();
    EXPECT_THAT(done.last_ranks, ElementsAre(last));
    ASSERT_THAT(done.lateness_us, SizeIs(1));
    // Of ranks below one another only the last one's time travels.
    EXPECT_LE(done.lateness_us.front(), 40'200);
    if (GetParam().ranks == 2) {
      EXPECT_NEAR(done.lateness_us.front(), 40'000, 200);
    }
  }
}

TEST_P(HeldReportsTest, ALatenessOfDaysIsExact) {
  LockstepWorld world = Make({Held("a")});
  const int last = world.size() - 1;
  for (const absl::Duration late : {absl::Hours(2), absl::Hours(24 * 10)}) {
    for (int rank = 0; rank < last; ++rank) world.Submit(rank, Held("a"));
    world.Advance(late);
    world.Submit(last, Held("a"));
    world.MarkUrgent(0, "a");
    world.Settle();
    const auto& done = world.done(0).back();
    EXPECT_THAT(done.last_ranks, ElementsAre(last));
    ASSERT_THAT(done.lateness_us, SizeIs(1));
    if (GetParam().ranks == 2) {
      EXPECT_NEAR(done.lateness_us.front(), absl::ToInt64Microseconds(late),
                  200);
    }
  }
}

TEST_P(HeldReportsTest, NobodyWaitsForWhatARemovedSetHasTakenAlong) {
  LockstepWorld world = Make({});
  const int last = world.size() - 1;
  const ProcessSetId set = world.AddProcessSet({0, last});
  Request request = Held("a");
  request.process_set = set;
  world.Submit(0, request);
  world.MarkUrgent(0, "a");
  world.Settle();
  EXPECT_TRUE(world[last].is_awaited());
  Request remove;
  remove.name = "remove";
  remove.collective = Collective::kRemoveProcessSet;
  remove.removed = set;
  world.SubmitEverywhere(remove);
  world.Settle();
  EXPECT_FALSE(world.IsPending(0, "a"));
  for (int rank = 0; rank < world.size(); ++rank) {
    EXPECT_FALSE(world[rank].is_awaited()) << rank;
  }
}

// Sets with ranks outside that pass reports on, tensors without gradients,
// ranks that join: whatever one rank waits for is done in the end.
TEST_P(HeldReportsTest, WhateverSomebodyWaitsForIsDone) {
  for (uint32_t seed = 0; seed < 8; ++seed) {
    std::mt19937 random(seed);
    LockstepWorld world = Make({});
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
      struct Submission {
        int rank;
        Request request;
        bool awaited;
      };
      std::vector<Submission> submissions;
      for (int name = 0; name < 9; ++name) {
        if (random() % 3 == 0) continue;
        const int set = name % 3;
        Request request = Held(absl::StrCat("t", name), 8 + 20 * name);
        request.process_set = sets[set];
        const size_t waits = random() % members[set].size();
        for (size_t i = 0; i < members[set].size(); ++i) {
          submissions.push_back({members[set][i], request, i == waits});
        }
      }
      std::shuffle(submissions.begin(), submissions.end(), random);
      for (const Submission& one : submissions) {
        world.Submit(one.rank, one.request, /*absent=*/random() % 4 == 0);
        if (one.awaited) world.MarkUrgent(one.rank, one.request.name);
        for (uint32_t i = random() % 4; i > 0 && world.Step(random); --i) {
        }
      }
      world.Settle(random);
      for (const Submission& one : submissions) {
        ASSERT_FALSE(world.IsPending(one.rank, one.request.name))
            << "seed " << seed << ", step " << step << ", rank " << one.rank
            << ", " << one.request.name;
      }
    }
    // All but one join; what it waits for is done without them.
    const int alone = static_cast<int>(random() % size);
    for (int rank = 0; rank < size; ++rank) {
      if (rank != alone) world.Join(rank);
      if (random() % 2 == 0) world.Step(random);
    }
    world.Submit(alone, Held("t0", 8));
    world.MarkUrgent(alone, "t0");
    world.Settle(random);
    EXPECT_FALSE(world.IsPending(alone, "t0")) << "seed " << seed;
  }
}

INSTANTIATE_TEST_SUITE_P(Worlds, HeldReportsTest,
                         ::testing::Values(
                             HeldWorld{2, 1, 8}, HeldWorld{5, 1, 1},
                             HeldWorld{4, 2, 2}, HeldWorld{16, 4, 2},
                             HeldWorld{33, 8, 3}, HeldWorld{20, 1, 8}),
                         [](const auto& info) {
                           return absl::StrCat(info.param.ranks, "Ranks",
                                               info.param.ranks_per_host,
                                               "PerHostArity",
                                               info.param.arity);
                         });

}  // namespace
}  // namespace hvdlite::negotiation
