// Operations that wait for ranks, ranks that do not answer, ranks that cannot
// go on.
#include <string>
#include <vector>

#include "absl/strings/str_cat.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "negotiation/negotiator.h"
#include "tests/testing/gradient_request.h"
#include "tests/testing/lockstep_world.h"

namespace hvdlite::negotiation {
namespace {

using hvdlite::testing::Gradient;
using hvdlite::testing::LockstepWorld;
using hvdlite::testing::SmallBatches;
using ::testing::AllOf;
using ::testing::HasSubstr;
using ::testing::IsEmpty;
using ::testing::SizeIs;

TEST(NegotiatorLivenessTest, StallWarningNamesTensorRanksAndHosts) {
  Negotiator::Options options = SmallBatches();
  options.stall_warning = absl::Seconds(60);
  LockstepWorld world(6, options, /*ranks_per_host=*/2);
  world.Submit(4, Gradient("other"));
  world.Settle();
  for (const int rank : {0, 1, 2, 5}) world.Submit(rank, Gradient("x"));
  world.Settle();
  world.Advance(absl::Seconds(59));
  world.Settle();
  EXPECT_THAT(world.warnings, IsEmpty());
  world.Advance(absl::Seconds(16));
  world.Settle();
  ASSERT_THAT(world.warnings, SizeIs(2)) << "'x' and 'other'";
  EXPECT_THAT(world.warnings,
              ::testing::Contains(
                  AllOf(HasSubstr("'x' has waited 1m15s for 2 of 6 ranks"),
                        HasSubstr("rank 3 (host1): has submitted nothing yet"),
                        HasSubstr("rank 4 (host2): last submitted 'other'"))));
  // The world is healthy: the ranks may still come.
  for (const int rank : {3, 4}) world.Submit(rank, Gradient("x"));
  world.MarkUrgent(0, "x");
  world.Settle();
  EXPECT_FALSE(world.IsPending(0, "x"));
}

TEST(NegotiatorLivenessTest, TensorsThatWaitForTheSameRanksAreOneWarning) {
  LockstepWorld world(2, SmallBatches());
  for (int i = 0; i < 10; ++i) {
    world.Submit(0, Gradient(absl::StrCat("g", i)));
  }
  world.Advance(absl::Seconds(61));
  world.Settle();
  ASSERT_THAT(world.warnings, SizeIs(1));
  EXPECT_THAT(world.warnings.front(),
              AllOf(HasSubstr("'g0', 'g1', 'g2' and 7 more have waited"),
                    HasSubstr("rank 1 (host1)")));
}

TEST(NegotiatorLivenessTest, StoppedRankIsSaidNotToAnswer) {
  Negotiator::Options options = SmallBatches();
  LockstepWorld world(7, options);
  for (int rank = 0; rank < 7; ++rank) {
    if (rank != 1) world.Submit(rank, Gradient("x"));
  }
  world.Settle();
  world.Stop(1);  // ranks 3 and 4 are below it
  for (int i = 0; i < 20; ++i) {
    world.Advance(absl::Seconds(10));
    world.Settle();
  }
  ASSERT_FALSE(world.warnings.empty());
  EXPECT_THAT(world.warnings.front(),
              AllOf(HasSubstr("rank 1 (host1): does not answer"),
                    HasSubstr("rank 3"), HasSubstr("rank 4")));
}

TEST(NegotiatorLivenessTest, StallBeyondTheLimitBreaksTheWorldOnEveryRank) {
  Negotiator::Options options = SmallBatches();
  options.stall_failure = absl::Seconds(100);
  LockstepWorld world(3, options);
  world.Submit(0, Gradient("x"));
  world.Submit(1, Gradient("x"));
  for (int i = 0; i < 20; ++i) {
    world.Advance(absl::Seconds(10));
    world.Settle();
  }
  for (int rank = 0; rank < 3; ++rank) {
    ASSERT_FALSE(world.done(rank).empty());
    EXPECT_EQ(world.done(rank).front().kind, Decision::Kind::kBroken);
    EXPECT_THAT(world.done(rank).front().message,
                AllOf(HasSubstr("'x'"), HasSubstr("rank 2 (host2)")));
  }
}

TEST(NegotiatorLivenessTest, RankThatCannotGoOnBreaksTheWorldOnEveryRankOnce) {
  LockstepWorld world(6, SmallBatches());
  world.Submit(0, Gradient("x"));
  world[5].GiveUp("its link is down");
  world[4].GiveUp("so is mine");
  world.Advance(absl::ZeroDuration());
  world.Settle();
  for (int rank = 0; rank < 6; ++rank) {
    ASSERT_THAT(world.done(rank), SizeIs(1));
    EXPECT_EQ(world.done(rank).front().kind, Decision::Kind::kBroken);
    EXPECT_THAT(world.done(rank).front().message, HasSubstr("(host"));
  }
}

TEST(NegotiatorLivenessTest, RanksBelowOneThatCannotGoOnDoNotWaitForTheRoot) {
  Negotiator::Options options = SmallBatches();
  options.tree_arity = 2;
  LockstepWorld world(7, options);
  world.Submit(3, Gradient("x"));
  world.Stop(0);
  world[1].GiveUp("its memory is full");
  world.Settle();
  for (const int rank : {1, 3, 4}) {
    ASSERT_THAT(world.done(rank), SizeIs(1)) << rank;
    EXPECT_EQ(world.done(rank).front().kind, Decision::Kind::kBroken);
    EXPECT_THAT(world.done(rank).front().message,
                HasSubstr("rank 1 (host1) cannot go on: its memory is full"));
  }
}

}  // namespace
}  // namespace hvdlite::negotiation
