// Ranks hold their reports back until they are worth a batch or somebody waits.
#include <string>
#include <vector>

#include "absl/strings/str_cat.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "negotiation/negotiator.h"
#include "tests/testing/lockstep_world.h"

namespace hvdlite::negotiation {
namespace {

using hvdlite::testing::LockstepWorld;
using ::testing::ElementsAre;

constexpr int64_t kMinBatchBytes = 1024;

struct World {
  int ranks;
  int ranks_per_host;
  int arity;
};

Request Gradient(const std::string& name, int64_t elements = 8) {
  Request request;
  request.name = name;
  request.tensors = {{.shape = {elements}}};
  return request;
}

class HeldReportsTest : public ::testing::TestWithParam<World> {
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
  LockstepWorld world = Make({Gradient("a")});
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

TEST_P(HeldReportsTest, WhoeverSubmitsLateIsAskedBefore) {
  LockstepWorld world = Make({Gradient("a")});
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

TEST_P(HeldReportsTest, WhatIsWorthABatchIsReportedWithoutAnybodyWaiting) {
  const std::vector<Request> halves = {Gradient("a", 128), Gradient("b", 128)};
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
  LockstepWorld world = Make({Gradient("a"), Gradient("b")});
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

INSTANTIATE_TEST_SUITE_P(Worlds, HeldReportsTest,
                         ::testing::Values(World{2, 1, 8}, World{5, 1, 1},
                                           World{4, 2, 2}, World{16, 4, 2},
                                           World{33, 8, 3}, World{20, 1, 8}),
                         [](const auto& info) {
                           return absl::StrCat(info.param.ranks, "Ranks",
                                               info.param.ranks_per_host,
                                               "PerHostArity",
                                               info.param.arity);
                         });

}  // namespace
}  // namespace hvdlite::negotiation
