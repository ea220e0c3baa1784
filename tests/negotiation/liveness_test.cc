#include "negotiation/liveness.h"

#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "tests/testing/gradient_request.h"
#include "tests/testing/lockstep_world.h"

namespace hvdlite::negotiation {
namespace {

using hvdlite::testing::Gradient;
using hvdlite::testing::LockstepWorld;
using ::testing::AllOf;
using ::testing::ElementsAre;
using ::testing::HasSubstr;
using ::testing::IsEmpty;

TEST(PhaseRulesTest, StandInTheOrderOfThePhases) {
  for (const PhaseRule& rule : kPhaseRules) {
    EXPECT_EQ(&RuleOf(rule.phase), &rule);
  }
}

// Whoever computes is left in peace; and who waits for others is never to blame
// itself, however long that takes: at a gate, others may be in a long batch.
TEST(PhaseRulesTest, OnlyACallOfTheDataPlaneMustReturn) {
  for (const PhaseRule& rule : kPhaseRules) {
    EXPECT_EQ(rule.must_return, rule.phase == Phase::kInDataPlane);
    EXPECT_EQ(rule.silent_neighbours, rule.phase != Phase::kComputing);
  }
}

Negotiator::Options WarnsAfter(absl::Duration warning) {
  Negotiator::Options options;
  options.stall_warning = warning;
  options.min_batch_bytes = 0;
  return options;
}

// Rank 1 is inside a batch of another set that takes its time.
TEST(LateAtGateTest, IsToldWithTheRanksThatAreMissing) {
  LockstepWorld world(3, WarnsAfter(absl::Seconds(60)));
  const ProcessSetId pair = world.AddProcessSet({0, 1});
  Request long_batch = Gradient("long");
  long_batch.process_set = pair;
  for (const int rank : {0, 1}) world.Submit(rank, long_batch);
  ASSERT_TRUE(world.Begin(1));
  ASSERT_TRUE(world.Begin(0));
  world[0].OnDone();
  world.SubmitEverywhere(Gradient("x"));
  world.DeliverAll();
  ASSERT_FALSE(world.Begin(2));
  world.Advance(absl::Seconds(59));
  world.DeliverAll();
  EXPECT_THAT(world.warnings, IsEmpty());
  world.Advance(absl::Seconds(1));
  world.DeliverAll();
  EXPECT_THAT(
      world.warnings,
      ElementsAre(AllOf(HasSubstr("rank 0 (host0) has waited 1m"),
                        HasSubstr("'x'"), HasSubstr("rank 1 (host1)")),
                  AllOf(HasSubstr("rank 2 (host2) has waited 1m"),
                        HasSubstr("rank 0 (host0) or ranks above it"))));
  // The batch ends, and so does the wait; nobody was given up.
  world[1].OnDone();
  world.Settle();
  for (int rank = 0; rank < 3; ++rank) {
    EXPECT_EQ(world.done(rank).back().tensors, std::vector<std::string>{"x"});
    EXPECT_FALSE(world[rank].given_up().has_value());
  }
}

TEST(LateAtGateTest, IsNotToldOfGatesThatFollowOneAnother) {
  LockstepWorld world(2, WarnsAfter(absl::Seconds(60)));
  for (int step = 0; step < 10; ++step) {
    world.SubmitEverywhere(Gradient("x"));
    world.Settle();
    world.Advance(absl::Seconds(20));
  }
  EXPECT_THAT(world.warnings, IsEmpty());
}

}  // namespace
}  // namespace hvdlite::negotiation
