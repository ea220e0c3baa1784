#include "negotiation/protocol/liveness.h"

#include <string>
#include <vector>

#include "absl/strings/match.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "tests/testing/fakes/negotiation_requests.h"
#include "tests/testing/worlds/sim_world.h"

namespace hvdlite::negotiation {
namespace {

using hvdlite::testing::Gradient;
using hvdlite::testing::SimWorld;
using ::testing::AllOf;
using ::testing::ElementsAre;
using ::testing::HasSubstr;
using ::testing::IsEmpty;
using ::testing::SizeIs;

Negotiator::Options WithTimeout(absl::Duration timeout) {
  Negotiator::Options options;
  options.heartbeat.timeout = timeout;
  return options;
}

class HeartbeatTest : public ::testing::Test {
 protected:
  // The tree of seven ranks: 0 above 1 and 2, 1 above 3 and 4, 2 above 5 and 6.
  SimWorld world_{{7}, WithTimeout(absl::Seconds(30))};
  int messages_ = 0;

  void Pass(absl::Duration time) {
    world_.AdvanceBySteps(time, absl::Milliseconds(500));
  }
  void CountMessages() {
    messages_ = 0;
    world_.on_send = [this](const std::string&) { ++messages_; };
  }
  void ExpectBroken(int rank, const std::string& lost,
                    const std::string& finder) {
    ASSERT_THAT(world_.done(rank), SizeIs(1)) << rank;
    EXPECT_EQ(world_.done(rank)[0].kind, Decision::Kind::kBroken);
    EXPECT_THAT(world_.done(rank)[0].message,
                AllOf(HasSubstr(lost + " has given no sign of life to " +
                                finder + " for 3"),
                      HasSubstr("or the link between the two is cut")));
  }
};

TEST_F(HeartbeatTest, NothingIsSentWhileNoRankWaits) {
  CountMessages();
  Pass(absl::Seconds(100));
  EXPECT_EQ(messages_, 0);
  world_.Run(Gradient("x"));
  Pass(absl::Seconds(5));
  messages_ = 0;
  Pass(absl::Seconds(100));
  EXPECT_EQ(messages_, 0);
}

TEST_F(HeartbeatTest, PingsEndOnceNoRankWaits) {
  world_.Submit(3, Gradient("x"));
  Pass(absl::Seconds(20));
  for (const int rank : {0, 1, 2, 4, 5, 6}) world_.Submit(rank, Gradient("x"));
  world_.MarkUrgent(0, "x");
  world_.Settle();
  ASSERT_FALSE(world_.IsPending(3, "x"));
  Pass(absl::Seconds(20));
  CountMessages();
  Pass(absl::Seconds(100));
  EXPECT_EQ(messages_, 0);
}

TEST_F(HeartbeatTest, RanksThatAnswerAreAwaitedForever) {
  world_.Submit(3, Gradient("x"));
  world_.Settle();
  CountMessages();
  Pass(absl::Minutes(10));
  for (int rank = 0; rank < 7; ++rank) {
    EXPECT_THAT(world_.done(rank), IsEmpty());
  }
  // There is at most one ping and one answer per link and interval.
  EXPECT_GT(messages_, 6 * 200);
  EXPECT_LE(messages_, 6 * 2 * 600 + 100);
}

TEST_F(HeartbeatTest, OrdinaryMessagesAreSignsOfLife) {
  bool pinged = false;
  world_.on_send = [&](const std::string& bytes) {
    wire::Message message;
    message.ParseFromString(bytes);
    pinged = pinged || message.ping() || message.pong();
  };
  for (int step = 0; step < 50; ++step) {
    for (int rank = 0; rank < 7; ++rank) {
      world_.SubmitUrgently(rank, Gradient("x"));
    }
    world_.Advance(absl::Milliseconds(900));
    world_.Settle();
  }
  EXPECT_FALSE(pinged);
}

TEST_F(HeartbeatTest, StoppedLeafBreaksTheWorldOnEveryOtherRank) {
  world_.Submit(0, Gradient("x"));
  world_.Stop(6);
  Pass(absl::Seconds(28));
  EXPECT_THAT(world_.done(0), IsEmpty());
  Pass(absl::Seconds(10));
  for (int rank = 0; rank < 6; ++rank) {
    ExpectBroken(rank, "rank 6 (host6)", "rank 2 (host2)");
  }
}

TEST_F(HeartbeatTest, RanksBelowAStoppedOneEndTheWorldThemselves) {
  world_.SubmitEverywhere(Gradient("y"));
  world_.Stop(1);
  Pass(absl::Seconds(40));
  ExpectBroken(0, "rank 1 (host1)", "rank 0 (host0)");
  ExpectBroken(2, "rank 1 (host1)", "rank 0 (host0)");
  ExpectBroken(3, "rank 1 (host1)", "rank 3 (host3)");
  ExpectBroken(4, "rank 1 (host1)", "rank 4 (host4)");
  ExpectBroken(6, "rank 1 (host1)", "rank 0 (host0)");
}

TEST_F(HeartbeatTest, MessagesOfALostParentAreIgnored) {
  world_.Submit(3, Gradient("x"));
  world_.Stop(1);
  Pass(absl::Seconds(40));
  ASSERT_THAT(world_.done(3), SizeIs(1));
  wire::Message late;
  late.mutable_directive()->add_decisions()->set_number(1);
  EXPECT_TRUE(world_[3].OnMessage(1, late).ok());
  EXPECT_FALSE(world_[3].NextDecision().has_value());
}

TEST_F(HeartbeatTest, StoppedRootIsDetectedByRanksFarBelow) {
  world_.Submit(5, Gradient("x"));
  world_.Stop(0);
  Pass(absl::Seconds(45));
  ExpectBroken(5, "rank 0 (host0)", "rank 2 (host2)");
  ExpectBroken(6, "rank 0 (host0)", "rank 2 (host2)");
}

TEST(HeartbeatInABucketTest, StoppedRankIsDetectedByARankInsideABucket) {
  SimWorld world({2}, WithTimeout(absl::Seconds(30)));
  world.SubmitEverywhere(Gradient("x"));
  world.MarkUrgent(0, "x");
  ASSERT_TRUE(world.BeginAfterAll(0));
  world.Stop(1);
  for (int i = 0; i < 70; ++i) {
    world.Advance(absl::Milliseconds(500));
    world.DeliverAll();
  }
  ASSERT_TRUE(world[0].abort_reason().has_value());
  EXPECT_THAT(*world[0].abort_reason(), HasSubstr("rank 1 (host1)"));
}

TEST_F(HeartbeatTest, TimeWithoutReadingMessagesDoesNotCount) {
  world_.Submit(0, Gradient("x"));
  world_.Advance(absl::Seconds(1));
  world_.Advance(absl::Seconds(1));  // all ranks are pinged and do not answer
  for (int i = 0; i < 10; ++i) world_.Advance(absl::Seconds(60));
  world_.Settle();
  EXPECT_THAT(world_.done(0), IsEmpty());
  EXPECT_TRUE(world_.IsPending(0, "x"));
}

TEST(HeartbeatOffTest, NoRankIsPingedWithoutATimeout) {
  SimWorld world({3}, WithTimeout(absl::InfiniteDuration()));
  world.Submit(0, Gradient("x"));
  world.Stop(1);
  bool sent = false;
  world.on_send = [&](const std::string&) { sent = true; };
  world.AdvanceBySteps(absl::Seconds(50), absl::Milliseconds(500));
  EXPECT_FALSE(sent);
  EXPECT_FALSE(world[0].abort_reason().has_value());
}

TEST(HeartbeatOfOneTest, NextDeadlineIsTheNextPing) {
  Heartbeat heartbeat({.interval = absl::Seconds(1)}, {7});
  constexpr int64_t kSecond = 1'000'000'000;
  EXPECT_FALSE(heartbeat.Advance(false, 5 * kSecond).has_value());
  EXPECT_EQ(heartbeat.next_deadline_ns(), std::nullopt);
  heartbeat.Advance(true, 6 * kSecond);
  EXPECT_EQ(heartbeat.next_deadline_ns(), 7 * kSecond);
  heartbeat.OnMessage(7, /*is_ping=*/false, 6 * kSecond + 5);
  EXPECT_EQ(heartbeat.next_deadline_ns(), 7 * kSecond + 5);
  heartbeat.Advance(true, 7 * kSecond + 5);
  EXPECT_TRUE(heartbeat.Take(7, /*sends=*/false).ping);
  EXPECT_FALSE(heartbeat.Take(7, /*sends=*/false).ping);
  EXPECT_EQ(heartbeat.next_deadline_ns(), 8 * kSecond + 5);
  heartbeat.Advance(false, 8 * kSecond);
  EXPECT_EQ(heartbeat.next_deadline_ns(), std::nullopt);
}

TEST(HeartbeatOfTwoTest, EachIsLostOncePerTimeout) {
  Heartbeat heartbeat(
      {.interval = absl::Seconds(1), .timeout = absl::Seconds(3)}, {7, 9});
  std::vector<int> lost;
  std::vector<int64_t> seconds;
  for (int64_t second = 0; second < 9; ++second) {
    for (int again = 0; again < 2; ++again) {
      const auto found = heartbeat.Advance(true, second * 1'000'000'000);
      if (!found.has_value()) continue;
      lost.push_back(found->rank);
      seconds.push_back(second);
      EXPECT_EQ(found->silent, absl::Seconds(second));
      // The other one is reported immediately.
      EXPECT_EQ(*heartbeat.next_deadline_ns(),
                (second + again) * 1'000'000'000);
    }
  }
  EXPECT_THAT(lost, ::testing::ElementsAre(7, 9, 7, 9));
  EXPECT_THAT(seconds, ::testing::ElementsAre(4, 4, 7, 7));
}

TEST(HeartbeatOfOneTest, PongIsSentOnlyIfNothingElseIs) {
  Heartbeat heartbeat({}, {7});
  heartbeat.OnMessage(7, /*is_ping=*/true, 1);
  EXPECT_FALSE(heartbeat.Take(7, /*sends=*/true).pong);
  EXPECT_FALSE(heartbeat.Take(7, /*sends=*/false).pong);
  heartbeat.OnMessage(7, /*is_ping=*/true, 2);
  EXPECT_TRUE(heartbeat.Take(7, /*sends=*/false).pong);
  EXPECT_FALSE(heartbeat.Take(7, /*sends=*/false).pong);
}

TEST(PhaseRulesTest, AreInTheOrderOfThePhases) {
  for (const PhaseRule& rule : kPhaseRules) {
    EXPECT_EQ(&RuleOf(rule.phase), &rule);
  }
}

// A computing rank is not watched. Waiting for others is not an error of the
// waiting rank, however long it takes: at a gate, others may be in a long
// reduction.
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

// Rank 1 is inside a long bucket of another set.
TEST(LateAtGateTest, WarningNamesTheMissingRanks) {
  SimWorld world({3}, WarnsAfter(absl::Seconds(60)));
  const ProcessSetId pair = world.AddProcessSet({0, 1});
  for (const int rank : {0, 1}) world.Submit(rank, Gradient("long", 16, pair));
  ASSERT_TRUE(world.BeginAfterAll(1));
  ASSERT_TRUE(world.BeginAfterAll(0));
  world.Finish(0);
  world.SubmitEverywhere(Gradient("x"));
  world.DeliverAll();
  ASSERT_FALSE(world.BeginAfterAll(2));
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
  // The bucket ends, and so does the wait; the world has not ended.
  world.Finish(1);
  world.Settle();
  for (int rank = 0; rank < 3; ++rank) {
    EXPECT_EQ(world.done(rank).back().tensors, std::vector<std::string>{"x"});
    EXPECT_FALSE(world[rank].abort_reason().has_value());
  }
}

TEST(LateAtGateTest, ConsecutiveGatesAreNotLate) {
  SimWorld world({2}, WarnsAfter(absl::Seconds(60)));
  for (int step = 0; step < 10; ++step) {
    world.SubmitEverywhere(Gradient("x"));
    world.Settle();
    world.Advance(absl::Seconds(20));
  }
  EXPECT_THAT(world.warnings, IsEmpty());
}

// Rank 1 has left, for example because of an exception, but does not call
// shutdown().
TEST(LateAtGateTest, LastGateEndsTheWorldIfConfigured) {
  for (const bool fatal : {false, true}) {
    Negotiator::Options options = WarnsAfter(absl::Seconds(60));
    if (fatal) options.stall_failure = absl::Seconds(90);
    SimWorld world({2}, options);
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
    EXPECT_EQ(world[0].abort_reason().has_value(), fatal);
    // The next deadline is in the future.
    if (!fatal) {
      EXPECT_GT(world[0].next_deadline_ns(), world.now_ns());
    }
  }
}

}  // namespace
}  // namespace hvdlite::negotiation
