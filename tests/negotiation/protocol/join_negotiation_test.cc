// Joining in the negotiation: ranks that are awaited, and ranks without data.
#include <random>
#include <string>
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
using ::testing::AllOf;
using ::testing::ElementsAre;
using ::testing::HasSubstr;

TEST(JoinTest, JoinedRankTakesPartWithoutSubmitting) {
  for (int joined = 0; joined < 5; ++joined) {
    SimWorld world({5}, SmallBuckets());
    world.Join(joined);
    world.Settle();
    // These are new names, which the joined rank has never seen, and known
    // ones.
    for (int step = 0; step < 3; ++step) {
      for (int rank = 0; rank < 5; ++rank) {
        if (rank != joined) world.SubmitUrgently(rank, Gradient("x"));
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

TEST(JoinTest, PendingOperationsBecomeReadyWhenTheirLastRankJoins) {
  SimWorld world({4}, SmallBuckets());
  for (const int rank : {0, 1, 3}) world.SubmitUrgently(rank, Gradient("x"));
  world.Settle();
  EXPECT_TRUE(world.IsPending(0, "x"));
  world.Join(2);
  world.Settle();
  EXPECT_FALSE(world.IsPending(0, "x"));
  EXPECT_FALSE(world.IsPending(3, "x"));
}

TEST(JoinTest, OwnPendingOperationsComeBeforeTheJoin) {
  SimWorld world({2}, SmallBuckets());
  world.Submit(1, Gradient("x"));
  world.Join(1);
  world.Settle();
  world.SubmitUrgently(0, Gradient("y"));
  world.Settle();
  EXPECT_TRUE(world.IsPending(0, "y")) << "rank 1 has not joined yet";
  world.SubmitUrgently(0, Gradient("x"));
  world.Settle();
  EXPECT_FALSE(world.IsPending(0, "y"));
  EXPECT_THAT(world.done(1)[0].tensors, ElementsAre("x"));
  EXPECT_EQ(world.done(1)[0].participants, 2);
  EXPECT_THAT(world.done(1)[1].tensors, ElementsAre("(y)"));
  EXPECT_EQ(world.done(1)[1].participants, 1);
}

TEST(JoinTest, OwnSmallOperationsDoNotDelayTheJoin) {
  for (const int size : {1, 3}) {
    SimWorld world({size}, SmallBuckets());
    world.SubmitEverywhere(Gradient("small"));
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

// A relay gets the news of a join, and of what becomes ready by it, in one
// message; it sends both in one message, too.
TEST(JoinTest, JoinBelowARelayIsHandledBeforeWhatItMadeReady) {
  SimWorld world({7}, SmallBuckets());
  world.Join(6);
  Request request = Gradient("all to all");
  request.collective = Collective::kAlltoall;
  for (int rank = 0; rank < 6; ++rank) world.Submit(rank, request);
  world.Settle();
  for (int rank = 0; rank < 6; ++rank) {
    ASSERT_FALSE(world.done(rank).empty());
    EXPECT_EQ(world.done(rank).back().kind, Decision::Kind::kFailure);
  }
}

TEST(JoinTest, EveryRankLearnsTheLastToJoinAndContinues) {
  for (uint32_t seed = 0; seed < 20; ++seed) {
    std::mt19937 random(seed);
    const int size = 1 + static_cast<int>(seed % 7);
    SimWorld world(
        {size, 1 + static_cast<int>(seed % 2), 1 + static_cast<int>(seed % 3)},
        SmallBuckets());
    for (int round = 0; round < 3; ++round) {
      const int last = static_cast<int>(random() % size);
      for (int rank = 0; rank < size; ++rank) {
        if (rank != last) world.Join(rank);
      }
      world.Settle(random);
      world.SubmitUrgently(last, Gradient(absl::StrCat("alone ", round)));
      world.Settle(random);
      world.Join(last);
      world.Settle(random);
      for (int rank = 0; rank < size; ++rank) {
        const auto& done = world.done(rank).back();
        EXPECT_EQ(done.kind, Decision::Kind::kAllJoined);
        EXPECT_EQ(done.last_joined, last);
        EXPECT_FALSE(world.IsPending(rank, "join"));
      }
      // Afterwards all ranks are awaited again.
      for (int rank = 0; rank < size; ++rank) {
        if (rank != last) world.SubmitUrgently(rank, Gradient("together"));
      }
      world.Settle(random);
      if (size > 1) {
        EXPECT_TRUE(world.IsPending((last + 1) % size, "together"));
      }
      world.SubmitUrgently(last, Gradient("together"));
      world.Settle(random);
      EXPECT_EQ(world.done(last).back().participants, size);
    }
  }
}

TEST(JoinTest, OperationsThatNeedAllRanksFailWhileRanksHaveJoined) {
  SimWorld world({3}, SmallBuckets());
  world.Join(1);
  world.Settle();
  const auto message_of = [&](const Request& request) {
    for (const int rank : {0, 2}) world.Submit(rank, request);
    world.Settle();
    for (const int rank : {0, 2}) {
      EXPECT_EQ(world.done(rank).back().kind, Decision::Kind::kFailure);
      EXPECT_THAT(world.done(rank).back().tensors, ElementsAre(request.name));
    }
    return world.done(2).back().message;
  };
  Request request = Gradient("op");
  for (const Collective collective :
       {Collective::kAlltoall, Collective::kReducescatter,
        Collective::kAddProcessSet, Collective::kRemoveProcessSet}) {
    request.collective = collective;
    EXPECT_THAT(message_of(request), HasSubstr("rank 1 has joined"));
  }
  request.collective = Collective::kBroadcast;
  request.root_rank = 1;
  EXPECT_THAT(message_of(request), HasSubstr("its root, rank 1, has joined"));

  request.root_rank = 0;
  world.Run(request, {0, 2});
  EXPECT_THAT(world.done(1).back().tensors, ElementsAre("(op)"));
}

TEST(JoinTest, JoinedMembersOfAProcessSetCountAsReady) {
  SimWorld world({4}, SmallBuckets());
  const ProcessSetId set = world.AddProcessSet({1, 3});
  const ProcessSetId other = world.AddProcessSet({0, 2});
  world.Join(3);
  world.Settle();
  world.SubmitUrgently(1, Gradient("x", 16, set));
  for (const int rank : {0, 2})
    world.SubmitUrgently(rank, Gradient("y", 16, other));
  world.Settle();
  EXPECT_THAT(world.done(1).back().tensors, ElementsAre("x"));
  EXPECT_EQ(world.done(1).back().participants, 1);
  EXPECT_THAT(world.done(3).back().tensors, ElementsAre("(x)"));
  EXPECT_EQ(world.done(2).back().participants, 2);
}

TEST(JoinTest, LongJoinNamesTheRanksThatHaveNotJoinedAndIsNotFatal) {
  Negotiator::Options options = SmallBuckets();
  options.stall_failure = absl::Seconds(100);
  SimWorld world({4}, options);
  world.Join(0);
  world.Join(3);
  world.Settle();
  world.AdvanceBySteps(absl::Seconds(150), absl::Seconds(1));
  ASSERT_FALSE(world.warnings.empty());
  EXPECT_THAT(world.warnings.front(),
              AllOf(HasSubstr("'join()' has waited 1m"), HasSubstr("rank 1"),
                    HasSubstr("rank 2"), ::testing::Not(HasSubstr("rank 3"))));
  for (const int rank : {1, 2}) world.Join(rank);
  world.Settle();
  EXPECT_EQ(world.done(0).back().kind, Decision::Kind::kAllJoined);
}

TEST(JoinTest, NothingIsDecidedAfterShutdown) {
  SimWorld world({2}, SmallBuckets());
  world.SubmitEverywhere(Gradient("x"));
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
  SimWorld world({3}, SmallBuckets());
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
