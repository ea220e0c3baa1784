// Joining in the negotiation: who is waited for, who takes part with nothing.
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
using ::testing::AllOf;
using ::testing::ElementsAre;
using ::testing::HasSubstr;

Negotiator::Options JoinOptions(int arity = 2) {
  Negotiator::Options options;
  options.tree_arity = arity;
  options.min_batch_bytes = 1024;
  return options;
}

Request JoinSum(const std::string& name, ProcessSetId process_set = 0) {
  Request request;
  request.name = name;
  request.process_set = process_set;
  request.tensors = {{.shape = {16}}};
  return request;
}

void SubmitUrgently(LockstepWorld& world, int rank, const Request& request) {
  world.Submit(rank, request);
  world.MarkUrgent(rank, request.name);
}

TEST(JoinTest, JoinedRankTakesPartWithoutSubmitting) {
  for (int joined = 0; joined < 5; ++joined) {
    LockstepWorld world(5, JoinOptions());
    world.Join(joined);
    world.Settle();
    // New names, which the joined rank has never seen, and known ones.
    for (int step = 0; step < 3; ++step) {
      for (int rank = 0; rank < 5; ++rank) {
        if (rank != joined) SubmitUrgently(world, rank, JoinSum("x"));
      }
      world.Settle();
      ASSERT_EQ(world.done(joined).size(), static_cast<size_t>(step + 1));
      EXPECT_THAT(world.done(joined).back().tensors, ElementsAre("(x)"));
      EXPECT_EQ(world.done(joined).back().participants, 4);
      EXPECT_THAT(world.done((joined + 1) % 5).back().tensors,
                  ElementsAre("x"));
    }
  }
}

TEST(JoinTest, WhatWaitsForARankBecomesReadyWhenItJoins) {
  LockstepWorld world(4, JoinOptions());
  for (const int rank : {0, 1, 3}) SubmitUrgently(world, rank, JoinSum("x"));
  world.Settle();
  EXPECT_TRUE(world.IsPending(0, "x"));
  world.Join(2);
  world.Settle();
  EXPECT_FALSE(world.IsPending(0, "x"));
  EXPECT_FALSE(world.IsPending(3, "x"));
}

TEST(JoinTest, OwnPendingOperationsComeBeforeTheJoin) {
  LockstepWorld world(2, JoinOptions());
  world.Submit(1, JoinSum("x"));
  world.Join(1);
  world.Settle();
  SubmitUrgently(world, 0, JoinSum("y"));
  world.Settle();
  EXPECT_TRUE(world.IsPending(0, "y")) << "rank 1 has not joined yet";
  SubmitUrgently(world, 0, JoinSum("x"));
  world.Settle();
  EXPECT_FALSE(world.IsPending(0, "y"));
  EXPECT_THAT(world.done(1)[0].tensors, ElementsAre("x"));
  EXPECT_EQ(world.done(1)[0].participants, 2);
  EXPECT_THAT(world.done(1)[1].tensors, ElementsAre("(y)"));
  EXPECT_EQ(world.done(1)[1].participants, 1);
}

TEST(JoinTest, OwnSmallOperationsThatNobodyWaitsForDoNotHoldUpTheJoin) {
  for (const int size : {1, 3}) {
    LockstepWorld world(size, JoinOptions());
    world.SubmitEverywhere(JoinSum("small"));
    world.Settle();
    EXPECT_TRUE(world.IsPending(0, "small"));
    for (int rank = 0; rank < size; ++rank) world.Join(rank);
    world.Settle();
    for (int rank = 0; rank < size; ++rank) {
      EXPECT_FALSE(world.IsPending(rank, "small"));
      EXPECT_FALSE(world.IsPending(rank, "join"));
    }
  }
}

// A relay hears of a join and of what becomes ready by it in one message, and
// tells of both in one.
TEST(JoinTest, JoinBelowARelayIsKnownBeforeWhatItMadeReady) {
  LockstepWorld world(7, JoinOptions());
  world.Join(6);
  Request request = JoinSum("all to all");
  request.collective = Collective::kAlltoall;
  for (int rank = 0; rank < 6; ++rank) world.Submit(rank, request);
  world.Settle();
  for (int rank = 0; rank < 6; ++rank) {
    ASSERT_FALSE(world.done(rank).empty());
    EXPECT_EQ(world.done(rank).back().kind, Decision::Kind::kFailure);
  }
}

TEST(JoinTest, EveryRankLearnsTheLastToJoinAndGoesOn) {
  for (uint32_t seed = 0; seed < 20; ++seed) {
    std::mt19937 random(seed);
    const int size = 1 + static_cast<int>(seed % 7);
    LockstepWorld world(size, JoinOptions(1 + static_cast<int>(seed % 3)),
                        1 + static_cast<int>(seed % 2));
    for (int round = 0; round < 3; ++round) {
      const int last = static_cast<int>(random() % size);
      for (int rank = 0; rank < size; ++rank) {
        if (rank != last) world.Join(rank);
      }
      world.Settle(random);
      SubmitUrgently(world, last, JoinSum(absl::StrCat("alone ", round)));
      world.Settle(random);
      world.Join(last);
      world.Settle(random);
      for (int rank = 0; rank < size; ++rank) {
        const auto& done = world.done(rank).back();
        EXPECT_EQ(done.kind, Decision::Kind::kAllJoined);
        EXPECT_EQ(done.last_joined, last);
        EXPECT_FALSE(world.IsPending(rank, "join"));
      }
      // Afterwards everybody is waited for again.
      for (int rank = 0; rank < size; ++rank) {
        if (rank != last) SubmitUrgently(world, rank, JoinSum("together"));
      }
      world.Settle(random);
      if (size > 1) {
        EXPECT_TRUE(world.IsPending((last + 1) % size, "together"));
      }
      SubmitUrgently(world, last, JoinSum("together"));
      world.Settle(random);
      EXPECT_EQ(world.done(last).back().participants, size);
    }
  }
}

TEST(JoinTest, OperationsThatNeedEverybodyFailWhileRanksHaveJoined) {
  LockstepWorld world(3, JoinOptions());
  world.Join(1);
  world.Settle();
  const auto fails = [&](const Request& request) {
    for (const int rank : {0, 2}) world.Submit(rank, request);
    world.Settle();
    EXPECT_EQ(world.done(0).back().message, world.done(2).back().message);
    EXPECT_THAT(world.done(2).back().tensors, ElementsAre(request.name));
    return world.done(2).back().message;
  };
  Request request = JoinSum("op");
  for (const Collective collective :
       {Collective::kAlltoall, Collective::kReducescatter,
        Collective::kAddProcessSet, Collective::kRemoveProcessSet}) {
    request.collective = collective;
    EXPECT_THAT(fails(request), AllOf(HasSubstr("'op'"), HasSubstr("rank 1"),
                                      HasSubstr("joined")));
  }
  request.collective = Collective::kBroadcast;
  request.root_rank = 1;
  EXPECT_THAT(fails(request), HasSubstr("its root, rank 1, has joined"));

  request.root_rank = 0;
  request.name = "from a rank with data";
  for (const int rank : {0, 2}) SubmitUrgently(world, rank, request);
  world.Settle();
  EXPECT_THAT(world.done(1).back().tensors,
              ElementsAre("(from a rank with data)"));
}

TEST(JoinTest, JoinedMembersOfAProcessSetCountAsReady) {
  LockstepWorld world(4, JoinOptions());
  const ProcessSetId set = world.AddProcessSet({1, 3});
  const ProcessSetId other = world.AddProcessSet({0, 2});
  world.Join(3);
  world.Settle();
  SubmitUrgently(world, 1, JoinSum("x", set));
  for (const int rank : {0, 2})
    SubmitUrgently(world, rank, JoinSum("y", other));
  world.Settle();
  EXPECT_THAT(world.done(1).back().tensors, ElementsAre("x"));
  EXPECT_EQ(world.done(1).back().participants, 1);
  EXPECT_THAT(world.done(3).back().tensors, ElementsAre("(x)"));
  EXPECT_EQ(world.done(2).back().participants, 2);
}

TEST(JoinTest, JoinedRanksAreNotReportedAsMissing) {
  LockstepWorld world(4, JoinOptions());
  world.Join(1);
  world.Settle();
  world.Submit(0, JoinSum("x"));
  world.Advance(absl::Seconds(90));
  world.Settle();
  EXPECT_THAT(world.warnings,
              ::testing::Contains(AllOf(HasSubstr("'x'"), HasSubstr("rank 2"),
                                        HasSubstr("rank 3"),
                                        ::testing::Not(HasSubstr("rank 1")))));
}

TEST(JoinTest, LongJoinNamesTheRanksThatHaveNotJoinedAndIsNotFatal) {
  Negotiator::Options options = JoinOptions();
  options.stall_failure = absl::Seconds(100);
  LockstepWorld world(4, options);
  world.Join(0);
  world.Join(3);
  world.Settle();
  for (int i = 0; i < 150; ++i) {
    world.Advance(absl::Seconds(1));
    world.Settle();
  }
  ASSERT_FALSE(world.warnings.empty());
  EXPECT_THAT(world.warnings.front(),
              AllOf(HasSubstr("'join()' has waited 1m"), HasSubstr("rank 1"),
                    HasSubstr("rank 2"), ::testing::Not(HasSubstr("rank 3"))));
  for (const int rank : {1, 2}) world.Join(rank);
  world.Settle();
  EXPECT_EQ(world.done(0).back().kind, Decision::Kind::kAllJoined);
}

TEST(JoinTest, NothingIsDecidedAfterShutdown) {
  LockstepWorld world(2, JoinOptions());
  world.SubmitEverywhere(JoinSum("x"));
  for (int rank = 0; rank < 2; ++rank) world.Join(rank);
  for (int rank = 0; rank < 2; ++rank) world.Leave(rank, "it is over");
  world.DeliverAll();
  world.Settle();
  for (int rank = 0; rank < 2; ++rank) {
    ASSERT_FALSE(world.done(rank).empty());
    EXPECT_EQ(world.done(rank).back().kind, Decision::Kind::kShutdown);
  }
}

TEST(JoinTest, DepartureEndsAJoin) {
  LockstepWorld world(3, JoinOptions());
  world.Join(1);
  world.Settle();
  world.Leave(2, "it is tired");
  world.Settle();
  for (int rank = 0; rank < 3; ++rank) {
    ASSERT_FALSE(world.done(rank).empty());
    EXPECT_EQ(world.done(rank).back().kind, Decision::Kind::kDeparture);
  }
  EXPECT_FALSE(world[1].has_work());
}

}  // namespace
}  // namespace hvdlite::negotiation
