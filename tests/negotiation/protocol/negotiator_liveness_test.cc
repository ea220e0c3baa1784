// Operations that wait for ranks, ranks that do not answer, and ranks that
// cannot continue.
#include <random>
#include <string>
#include <vector>

#include "absl/strings/str_cat.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "negotiation/protocol/messages.pb.h"
#include "negotiation/protocol/negotiator.h"
#include "tests/testing/fakes/negotiation_requests.h"
#include "tests/testing/worlds/sim_world.h"

namespace hvdlite::negotiation {
namespace {

using hvdlite::testing::Gradient;
using hvdlite::testing::SimWorld;
using hvdlite::testing::SmallBuckets;
using ::testing::AllOf;
using ::testing::HasSubstr;
using ::testing::IsEmpty;
using ::testing::SizeIs;

// explained_hang_test checks the texts of warnings.
TEST(NegotiatorLivenessTest, StallCausesOneWarningPerOperation) {
  SimWorld world({6, 2}, SmallBuckets());
  world.Submit(4, Gradient("other"));
  world.Settle();
  for (const int rank : {0, 1, 2, 5}) world.Submit(rank, Gradient("x"));
  world.Settle();
  world.AdvanceBySteps(absl::Seconds(59), absl::Seconds(59));
  EXPECT_THAT(world.warnings, IsEmpty());
  world.AdvanceBySteps(absl::Seconds(32), absl::Seconds(16));
  EXPECT_THAT(world.warnings, SizeIs(2)) << "'x' and 'other'";
  // The ranks may still submit.
  for (const int rank : {3, 4}) world.Submit(rank, Gradient("x"));
  world.MarkUrgent(0, "x");
  world.Settle();
  EXPECT_FALSE(world.IsPending(0, "x"));
}

TEST(NegotiatorLivenessTest, OperationsThatWaitForOtherRanksAreNotCounted) {
  SimWorld world({2}, SmallBuckets());
  world.Submit(0, Gradient("x"));
  for (int i = 0; i < 3; ++i) {
    world.Submit(1, Gradient(absl::StrCat("g", i)));
  }
  world.Advance(absl::Seconds(61));
  world.Settle();
  ASSERT_FALSE(world.warnings.empty());
  EXPECT_THAT(world.warnings,
              ::testing::Each(::testing::Not(HasSubstr(" more "))));
}

TEST(NegotiatorLivenessTest, WarningSaysThatAStoppedRankDoesNotAnswer) {
  SimWorld world({7}, SmallBuckets());
  for (int rank = 0; rank < 7; ++rank) {
    if (rank != 1) world.Submit(rank, Gradient("x"));
  }
  world.Settle();
  world.Stop(1);  // ranks 3 and 4 are below it
  world.AdvanceBySteps(absl::Seconds(200), absl::Seconds(10));
  ASSERT_FALSE(world.warnings.empty());
  EXPECT_THAT(world.warnings.front(), HasSubstr("ranks 3-4: asked through it"));
}

TEST(NegotiatorLivenessTest, ManyMissingRanksAreNamedAsRuns) {
  for (const int arity : {1, 2, 8}) {
    SimWorld world({64, 4, arity}, SmallBuckets());
    for (int i = 0; i < 100; ++i) {
      world.Submit(5, Gradient(absl::StrCat("early", i)));
    }
    world.Settle();
    world.Advance(absl::Seconds(61));
    world.Settle();
    ASSERT_THAT(world.warnings, SizeIs(1)) << arity;
    EXPECT_THAT(world.warnings.front(), HasSubstr("; ranks 9-63."));
  }
}

TEST(NegotiatorLivenessTest, OnlyTheLowestScatteredRanksAreNamed) {
  SimWorld world({512}, SmallBuckets());
  for (int rank = 0; rank < world.size(); rank += 2) {
    world.Submit(rank, Gradient("even"));
  }
  world.DeliverAll();
  world.Advance(absl::Seconds(61));
  world.DeliverAll();
  ASSERT_THAT(world.warnings, SizeIs(1));
  EXPECT_THAT(world.warnings.front(), HasSubstr("; ranks 17, 19, 21,"));
  EXPECT_LT(world.warnings.front().size(), 1500u);
}

// Reports may be combined for a while on their way up.
TEST(NegotiatorLivenessTest, OperationThatHasEndedCausesNoWarning) {
  SimWorld world({2}, SmallBuckets());
  world.Submit(0, Gradient("x"));
  world.Submit(1, Gradient("y"));
  world.Advance(absl::Seconds(61));
  world.Settle();
  ASSERT_THAT(world.warnings, SizeIs(1)) << "'x' so far";
  world.Submit(0, Gradient("y"));
  world.MarkUrgent(0, "y");
  world.Settle();
  EXPECT_FALSE(world.IsPending(1, "y"));
  world.Advance(absl::Seconds(16));
  world.Settle();
  EXPECT_THAT(world.warnings, SizeIs(1));
}

// ---- Ranks that have left wait until the others leave.

TEST(NegotiatorLivenessTest, WarningNamesTheRankThatDoesNotLeave) {
  SimWorld world({6, 2}, SmallBuckets());
  world.Submit(3, Gradient("x"));
  for (int rank = 0; rank < 6; ++rank) {
    if (rank != 3) world.Leave(rank, "the end");
  }
  world.Settle();
  world.Advance(absl::Seconds(59));
  world.Settle();
  EXPECT_THAT(world.warnings, IsEmpty());
  world.Advance(absl::Seconds(16));
  world.Settle();
  ASSERT_THAT(world.warnings, SizeIs(1));
  EXPECT_THAT(
      world.warnings.front(),
      HasSubstr("'shutdown()' has waited 1m15s for 1 of 6 ranks to call it: "
                "rank 3 (host1): last submitted 'x' 1m15s ago."));
  world.Leave(3, "the end");
  world.Settle();
  for (int rank = 0; rank < 6; ++rank) {
    EXPECT_EQ(world.done(rank).back().kind, Decision::Kind::kShutdown);
    EXPECT_EQ(world[rank].next_deadline_ns(), std::nullopt) << rank;
  }
}

TEST(NegotiatorLivenessTest, RankThatDoesNotLeaveEndsTheWorldIfConfigured) {
  for (const bool fatal : {false, true}) {
    Negotiator::Options options = SmallBuckets();
    if (fatal) options.stall_failure = absl::Seconds(100);
    SimWorld world({4}, options);
    for (int rank = 0; rank < 3; ++rank) world.Leave(rank, "the end");
    world.Settle();
    world.AdvanceBySteps(absl::Seconds(200), absl::Seconds(10));
    for (int rank = 0; rank < 4; ++rank) {
      ASSERT_FALSE(world.done(rank).empty());
      EXPECT_EQ(world.done(rank).back().kind,
                fatal ? Decision::Kind::kBroken : Decision::Kind::kDeparture);
    }
  }
}

TEST(NegotiatorLivenessTest, StoppedRankEndsTheWaitOfThoseThatHaveLeft) {
  SimWorld world({7}, SmallBuckets());
  for (int rank = 0; rank < 7; ++rank) {
    if (rank != 1) world.Leave(rank, "the end");
  }
  world.Settle();
  world.Stop(1);  // ranks 3 and 4 are below it
  world.AdvanceBySteps(absl::Seconds(35), absl::Seconds(1));
  for (const int rank : {0, 2, 3, 4, 5, 6}) {
    ASSERT_FALSE(world.done(rank).empty());
    EXPECT_EQ(world.done(rank).back().kind, Decision::Kind::kBroken);
  }
}

TEST(NegotiatorLivenessTest, SilentRankOfTheSameHostIsNotBlamedOnALink) {
  for (const int hosts : {1, 2}) {
    SimWorld world({2 * hosts, 2}, SmallBuckets());
    world.Submit(1, Gradient("x"));
    world.Stop(0);
    world.AdvanceBySteps(absl::Seconds(35), absl::Seconds(1));
    ASSERT_FALSE(world.done(1).empty());
    EXPECT_THAT(
        world.done(1).back().message,
        AllOf(HasSubstr(hosts == 1 ? "waits in MPI for a rank that is gone"
                                   : "waits in MPI for a rank of another host"),
              ::testing::Not(HasSubstr("link"))));
  }
}

TEST(NegotiatorLivenessTest, NothingIsSentUpAfterTheShutdownDecision) {
  for (int seed = 1; seed <= 100; ++seed) {
    SimWorld world({7}, SmallBuckets());
    std::mt19937 random(seed);
    for (int rank = 0; rank < 6; ++rank) world.Leave(rank, "the end");
    world.Settle(random);
    bool decided = false;
    world.on_send = [&](const std::string& bytes) {
      wire::Message message;
      ASSERT_TRUE(message.ParseFromString(bytes));
      EXPECT_FALSE(decided && message.has_report()) << seed;
      for (const auto& decision : message.directive().decisions()) {
        if (decision.shutdown()) decided = true;
      }
    };
    world.Advance(absl::Seconds(61));  // a probe is on its way
    for (int steps = seed % 20; steps > 0; --steps) world.Step(random);
    world.Leave(6, "the end");
    world.Settle(random);
    for (int rank = 0; rank < 7; ++rank) {
      EXPECT_EQ(world.done(rank).back().kind, Decision::Kind::kShutdown);
    }
  }
}

TEST(NegotiatorLivenessTest, StallBeyondTheLimitBreaksTheWorldOnEveryRank) {
  Negotiator::Options options = SmallBuckets();
  options.stall_failure = absl::Seconds(100);
  SimWorld world({3}, options);
  world.Submit(0, Gradient("x"));
  world.Submit(1, Gradient("x"));
  world.AdvanceBySteps(absl::Seconds(200), absl::Seconds(10));
  for (int rank = 0; rank < 3; ++rank) {
    ASSERT_FALSE(world.done(rank).empty());
    EXPECT_EQ(world.done(rank).front().kind, Decision::Kind::kBroken);
  }
}

TEST(NegotiatorLivenessTest,
     RankThatCannotContinueBreaksTheWorldOnceOnEveryRank) {
  SimWorld world({6}, SmallBuckets());
  world.Submit(0, Gradient("x"));
  world.Abort(5, "its link is down");
  world.Abort(4, "so is mine");
  world.Settle();
  for (int rank = 0; rank < 6; ++rank) {
    ASSERT_THAT(world.done(rank), SizeIs(1));
    EXPECT_EQ(world.done(rank).front().kind, Decision::Kind::kBroken);
  }
}

TEST(NegotiatorLivenessTest, RanksBelowAFailedRankDoNotWaitForTheRoot) {
  SimWorld world({7}, SmallBuckets());
  world.Submit(3, Gradient("x"));
  world.Stop(0);
  world.Abort(1, "its memory is full");
  world.Settle();
  for (const int rank : {1, 3, 4}) {
    ASSERT_THAT(world.done(rank), SizeIs(1)) << rank;
    EXPECT_EQ(world.done(rank).front().kind, Decision::Kind::kBroken);
    EXPECT_THAT(
        world.done(rank).front().message,
        HasSubstr("rank 1 (host1) cannot continue: its memory is full"));
  }
}

}  // namespace
}  // namespace hvdlite::negotiation
