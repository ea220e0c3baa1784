#include "negotiation/protocol/liveness.h"

#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "tests/testing/fakes/gradient_request.h"
#include "tests/testing/worlds/lockstep_world.h"

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

// Rank 1 has left, as by an exception, but does not call shutdown().
TEST(LateAtGateTest, EndsTheWorldWhereItIsTheLastGateAndThatIsAskedFor) {
  for (const bool fatal : {false, true}) {
    Negotiator::Options options = WarnsAfter(absl::Seconds(60));
    if (fatal) options.stall_failure = absl::Seconds(90);
    LockstepWorld world(2, options);
    world.at_gate = [](int rank, const Decision& decision) {
      return rank == 1 && decision.kind == Decision::Kind::kShutdown
                 ? std::nullopt
                 : std::optional<uint32_t>(0);
    };
    for (const int rank : {0, 1}) world.Leave(rank, "the end");
    for (int i = 0; i < 13; ++i) {
      world.Settle();
      world.Advance(absl::Seconds(10));
    }
    world.Settle();
    ASSERT_FALSE(world.warnings.empty());
    EXPECT_THAT(world.warnings.front(),
                AllOf(HasSubstr("rank 0 (host0) has waited 1m"),
                      HasSubstr("rank 1 (host1)"),
                      HasSubstr("have not called hvdlite::shutdown()")));
    EXPECT_EQ(world[0].given_up().has_value(), fatal);
    // And what is due next lies ahead.
    if (!fatal) {
      EXPECT_GT(world[0].next_deadline_ns(), world.now_ns());
    }
  }
}

}  // namespace
}  // namespace hvdlite::negotiation
