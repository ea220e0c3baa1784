// Missing ranks report what they are doing. Whether to give up depends on that.
#include <optional>
#include <set>
#include <string>
#include <vector>

#include "absl/strings/str_cat.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "negotiation/protocol/negotiator.h"
#include "negotiation/protocol/process_look.h"
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
using ::testing::Not;
using ::testing::SizeIs;

ProcessLook Look(char state, int64_t cpu_ms) {
  return {.state = state,
          .sleeps_in = "nanosleep",
          .cpu_ms = cpu_ms,
          .over_ms = 10'000};
}

Explanation Asleep(const std::string& stacks = "main thread\n  #0 DoNothing") {
  return {.process = Look('S', 0), .stacks = stacks};
}

ProcessSample SampleAt(int64_t at_ns, char state, int64_t cpu_ns) {
  ProcessSample sample;
  sample.at_ns = at_ns;
  sample.state = state;
  sample.cpu_ns = cpu_ns;
  return sample;
}

Explanation Computes() {
  return {.process = Look('R', 9900), .stacks = "main thread\n  #0 Validate"};
}

Negotiator::Options Explains() {
  Negotiator::Options options = SmallBuckets();
  options.explains = true;
  options.stall_warning = absl::Seconds(60);
  options.stall_failure = absl::Seconds(660);
  options.heartbeat.timeout = absl::InfiniteDuration();
  options.pids = std::make_shared<std::vector<int>>(
      std::vector<int>{1000, 1001, 1002, 1003, 1004, 1005, 1006});
  return options;
}

size_t Occurrences(const std::string& text, const std::string& part) {
  size_t count = 0;
  for (size_t at = text.find(part); at != std::string::npos;
       at = text.find(part, at + 1)) {
    ++count;
  }
  return count;
}

// ---- The rule.

TEST(ProcessLookTest, StandingFollowsTheTable) {
  struct Case {
    ProcessLook look;
    bool waits;
    Standing standing;
  };
  ProcessLook reads = Look('D', 0);
  reads.io_bytes = 2 << 20;
  for (const Case& each :
       std::vector<Case>{{Look('R', 501), false, Standing::kComputing},
                         {Look('R', 500), false, Standing::kStuck},
                         {Look('S', 501), true, Standing::kWaiting},
                         {Look('S', 0), true, Standing::kWaiting},
                         {Look('S', 0), false, Standing::kStuck},
                         {Look('D', 0), false, Standing::kStuck},
                         {reads, false, Standing::kComputing},
                         {Look('T', 9000), false, Standing::kStuck},
                         {Look('T', 0), true, Standing::kStuck},
                         {Look('Z', 9000), false, Standing::kStuck},
                         {{}, false, Standing::kStuck}}) {
    ProcessLook look = each.look;
    look.waits_for_ranks = each.waits;
    EXPECT_EQ(StandingOf(look), each.standing)
        << DescribeProcess(look) << " " << look.cpu_ms;
  }
}

TEST(ProcessLookTest, DescriptionAgreesWithTheStanding) {
  EXPECT_EQ(DescribeProcess(Look('S', 12)),
            "sleeps in nanosleep (12 ms of CPU time in the last 10.0 s)");
  EXPECT_EQ(DescribeProcess(Look('S', 9900)),
            "computes (9.9 s of CPU time in the last 10.0 s): slow, not stuck");
  EXPECT_THAT(DescribeProcess(Look('T', 9900)), HasSubstr("is stopped (T)"));
  EXPECT_EQ(DescribeProcess({}), "");
}

// ---- Messages.

TEST(ExplainedHangTest, ManyTensorsAndThreeMissingRanksAreOneMessage) {
  SimWorld world({7, 2}, Explains());
  world.explain = [](int rank) { return rank == 5 ? Computes() : Asleep(); };
  for (int rank = 0; rank < 7; ++rank) world.Submit(rank, Gradient("first"));
  world.MarkUrgent(0, "first");
  world.Settle();
  for (int i = 0; i < 10; ++i) {
    for (const int rank : {0, 2, 4, 6}) {
      world.Submit(rank, Gradient(absl::StrCat("g", i)));
    }
  }
  world.AdvanceBySteps(absl::Seconds(90), absl::Seconds(1));
  ASSERT_THAT(world.warnings, SizeIs(1));
  EXPECT_THAT(
      world.warnings.front(),
      AllOf(HasSubstr("'g0', 'g1', 'g2', 'g3' and 6 more have waited"),
            HasSubstr("for 3 of 7 ranks"),
            HasSubstr("\n  rank 1 (host0, process 1001) sleeps in nanosleep"),
            HasSubstr("\n  rank 3 (host1, process 1003) sleeps"),
            HasSubstr("\n  rank 5 (host2, process 1005) computes"),
            HasSubstr("last finished 'first' 1m"),
            HasSubstr("\n  ranks 1, 3:\n    main thread\n      #0 DoNothing"),
            HasSubstr("\n  rank 5:\n    main thread\n      #0 Validate")));
}

TEST(ExplainedHangTest, LateAnswersAreNotAwaitedAndDoNoHarm) {
  SimWorld world({3}, Explains());
  bool answers = false;
  int asked = 0;
  world.explain = [&](int) {
    ++asked;
    return answers ? std::optional(Asleep()) : std::nullopt;
  };
  world.Submit(0, Gradient("x"));
  world.AdvanceBySteps(absl::Seconds(70), absl::Seconds(1));
  EXPECT_GT(asked, 0);
  ASSERT_THAT(world.warnings, SizeIs(1));
  EXPECT_THAT(world.warnings.front(),
              AllOf(HasSubstr("rank 1 (host1): has submitted nothing yet"),
                    Not(HasSubstr("DoNothing"))));
  // No rank asks any more.
  world[1].Explain([] { return Asleep(); }, [](int) { return std::nullopt; });
  world.Settle();
  EXPECT_THAT(world.warnings, SizeIs(1));
  answers = true;
  world.AdvanceBySteps(absl::Seconds(70), absl::Seconds(1));
  ASSERT_THAT(world.warnings, SizeIs(2));
  EXPECT_THAT(world.warnings.back(), HasSubstr("ranks 1-2:\n    main thread"));
}

TEST(ExplainedHangTest, SilentRankIsExaminedFromOutside) {
  SimWorld world({3, 3}, Explains());
  world.explain = [](int) { return Asleep(); };
  std::vector<int64_t> looked_ns;
  world.look_at = [&](int rank) -> std::optional<ProcessSample> {
    EXPECT_EQ(rank, 2);
    looked_ns.push_back(world.now_ns());
    return SampleAt(world.now_ns(), 'T', /*cpu_ns=*/0);
  };
  world.Stop(2);
  for (const int rank : {0, 1}) world.Submit(rank, Gradient("x"));
  world.AdvanceBySteps(absl::Seconds(70), absl::Milliseconds(250));
  ASSERT_THAT(world.warnings, SizeIs(1));
  EXPECT_THAT(world.warnings.front(),
              HasSubstr("rank 2 (host0): does not answer; its process is "
                        "stopped (T)"));
  ASSERT_THAT(looked_ns, SizeIs(2));
  EXPECT_EQ(looked_ns[1] - looked_ns[0], 1'000'000'000);
}

TEST(ExplainedHangTest, OverloadedRankIsSeenComputingFromOutside) {
  SimWorld world({2, 2}, Explains());
  world.explain = [](int) { return Asleep(); };
  world.look_at = [&](int) -> std::optional<ProcessSample> {
    return SampleAt(world.now_ns(), 'R', /*cpu_ns=*/world.now_ns());
  };
  world.Stop(1);
  world.Submit(0, Gradient("x"));
  world.AdvanceBySteps(absl::Seconds(1000), absl::Milliseconds(250));
  ASSERT_FALSE(world.warnings.empty());
  EXPECT_THAT(world.warnings.back(),
              AllOf(HasSubstr("does not answer; its process computes"),
                    HasSubstr("The world does not end yet")));
  EXPECT_THAT(world.done(0), IsEmpty());
}

TEST(ExplainedHangTest, RootReportsAllRanksInOrderOnRequestOfAnyRank) {
  for (const int asks : {0, 3, 6}) {
    SimWorld world({7, 2}, Explains());
    world.explain = [](int rank) {
      return rank == 3 || rank == 4 ? Computes() : Asleep();
    };
    world.Submit(4, Gradient("x"));
    world[asks].AskEverybody();
    world.Advance(absl::ZeroDuration());
    world.Settle();
    ASSERT_THAT(world.warnings, SizeIs(1)) << asks;
    const std::string& report = world.warnings.front();
    EXPECT_THAT(report, AllOf(HasSubstr("what all 7 ranks are doing"),
                              HasSubstr("\n  ranks 0-2, 5-6:\n    main thread"),
                              HasSubstr("\n  ranks 3-4:\n    main thread")));
    EXPECT_EQ(Occurrences(report, "DoNothing"), 1u);
    size_t last = 0;
    for (int rank = 0; rank < 7; ++rank) {
      const size_t at = report.find(absl::StrCat("\n  rank ", rank, " ("));
      ASSERT_NE(at, std::string::npos) << rank;
      EXPECT_GT(at, last);
      last = at;
    }
    EXPECT_THAT(report, AllOf(HasSubstr("last submitted 'x'"),
                              HasSubstr("has submitted nothing yet")));
    // There is one report per request.
    world[asks].AskEverybody();
    world.Advance(absl::ZeroDuration());
    world.Settle();
    EXPECT_THAT(world.warnings, SizeIs(2));
  }
}

TEST(ExplainedHangTest, ReportOfAllRanksNamesASilentRank) {
  SimWorld world({3}, Explains());
  world.explain = [](int) { return Asleep(); };
  world.Stop(1);
  world[0].AskEverybody();
  world.AdvanceBySteps(absl::Seconds(5), absl::Milliseconds(250));
  ASSERT_THAT(world.warnings, SizeIs(1));
  EXPECT_THAT(world.warnings.front(),
              AllOf(HasSubstr("ranks 0, 2:\n"),
                    HasSubstr("rank 1 (host1): does not answer")));
}

TEST(ExplainedHangTest, ReportOfManyRanksIsBounded) {
  Negotiator::Options options = Explains();
  options.pids = nullptr;
  SimWorld world({600, 4}, options);
  world.explain = [](int rank) {
    return Asleep(absl::StrCat(rank, std::string(10'000, 'x')));
  };
  size_t longest = 0;
  world.on_send = [&](const std::string& bytes) {
    longest = std::max(longest, bytes.size());
  };
  world[599].AskEverybody();
  world.DeliverAll();
  world.Advance(absl::ZeroDuration());
  world.DeliverAll();
  ASSERT_THAT(world.warnings, SizeIs(1));
  EXPECT_THAT(world.warnings.front(),
              HasSubstr("(stacks that differ from those shown)"));
  EXPECT_LT(longest, 120'000u);
}

// ---- Giving up.

class GivingUpTest : public ::testing::Test {
 protected:
  GivingUpTest() : world_({3}, Explains()) {
    world_.explain = [this](int rank) { return says_.at(rank); };
  }
  // Returns the seconds until the world ends; nullopt: not within `limit`.
  std::optional<int> GivesUpAfter(absl::Duration limit) {
    const int64_t start_ns = world_.now_ns();
    for (absl::Duration passed; passed < limit; passed += absl::Seconds(1)) {
      world_.Advance(absl::Seconds(1));
      world_.Settle();
      for (const auto& done : world_.done(0)) {
        if (done.kind != Decision::Kind::kBroken) continue;
        reason_ = done.message;
        return static_cast<int>((world_.now_ns() - start_ns) / 1'000'000'000);
      }
    }
    return std::nullopt;
  }

  std::vector<Explanation> says_ =
      std::vector<Explanation>{Asleep(), Asleep(), Asleep()};
  SimWorld world_;
  std::string reason_;
};

TEST_F(GivingUpTest, SleepingRankEndsTheWorldTenMinutesAfterTheFirstWarning) {
  for (const int rank : {0, 1}) world_.Submit(rank, Gradient("x"));
  const auto after = GivesUpAfter(absl::Hours(1));
  ASSERT_TRUE(after.has_value());
  EXPECT_GE(*after, 660);
  EXPECT_LE(*after, 660 + 20);
  EXPECT_THAT(reason_, AllOf(HasSubstr("rank 2 (host2)"), HasSubstr("'x'"),
                             Not(HasSubstr("DoNothing"))));
  EXPECT_THAT(world_.warnings.back(), HasSubstr("DoNothing"));
}

TEST_F(GivingUpTest, ComputingRankNeverEndsTheWorldButWarningsContinue) {
  says_[2] = Computes();
  for (const int rank : {0, 1}) world_.Submit(rank, Gradient("x"));
  EXPECT_EQ(GivesUpAfter(absl::Hours(2)), std::nullopt);
  EXPECT_GE(world_.warnings.size(), 90u);
  EXPECT_LE(world_.warnings.size(), 150u);
  EXPECT_THAT(
      world_.warnings.back(),
      AllOf(HasSubstr("computes"), HasSubstr("The world does not end yet")));
  world_.Submit(2, Gradient("x"));
  world_.MarkUrgent(0, "x");
  world_.Settle();
  EXPECT_FALSE(world_.IsPending(0, "x"));
}

TEST_F(GivingUpTest, RankThatStopsComputingEndsTheWorldTenMinutesLater) {
  says_[2] = Computes();
  for (const int rank : {0, 1}) world_.Submit(rank, Gradient("x"));
  EXPECT_EQ(GivesUpAfter(absl::Seconds(1200)), std::nullopt);
  says_[2] = Asleep();
  const auto after = GivesUpAfter(absl::Hours(1));
  ASSERT_TRUE(after.has_value());
  EXPECT_GE(*after, 560);
  EXPECT_LE(*after, 660);
}

TEST_F(GivingUpTest, OneStuckRankEndsTheWorld) {
  says_[1] = Computes();
  world_.Submit(0, Gradient("x"));
  EXPECT_TRUE(GivesUpAfter(absl::Hours(1)).has_value());
}

TEST_F(GivingUpTest, RankInABarrierWithAComputingRankIsNotStuck) {
  says_[2] = Computes();
  world_[1].set_waits(Negotiator::Waits::kLonger);
  Request barrier;
  barrier.name = "barrier";
  barrier.collective = Collective::kBarrier;
  world_.Submit(0, Gradient("x"));
  world_.Submit(2, Gradient("x"));
  world_.Submit(1, barrier);  // rank 2 will enter it later
  world_.Submit(0, barrier);
  EXPECT_EQ(GivesUpAfter(absl::Hours(1)), std::nullopt);
  // If rank 2 does not enter it, they wait for one another.
  says_[2] = Asleep();
  world_[2].set_waits(Negotiator::Waits::kLonger);
  EXPECT_TRUE(GivesUpAfter(absl::Hours(1)).has_value());
}

TEST_F(GivingUpTest, RankThatHasJoinedIsNotMissing) {
  world_.Join(2);
  world_.Settle();
  world_.Submit(0, Gradient("x"));
  says_[1] = Computes();
  EXPECT_EQ(GivesUpAfter(absl::Hours(1)), std::nullopt);
  EXPECT_THAT(world_.warnings.back(), Not(HasSubstr("rank 2")));
}

TEST_F(GivingUpTest, SlowShutdownDoesNotEndTheWorld) {
  says_[2] = Computes();
  for (const int rank : {0, 1}) world_.Leave(rank, "the end");
  world_.Settle();
  EXPECT_EQ(GivesUpAfter(absl::Hours(1)), std::nullopt);
}

}  // namespace
}  // namespace hvdlite::negotiation
