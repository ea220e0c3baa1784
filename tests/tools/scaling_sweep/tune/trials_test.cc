#include "tools/scaling_sweep/tune/trials.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <sstream>

#include "tests/tools/scaling_sweep/tune/fake_machine.h"
#include "tests/tools/scaling_sweep/tune/tune_spec.h"

namespace hvdlite::scaling_sweep {
namespace {

using ::testing::HasSubstr;

class TrialsTest : public ::testing::Test {
 protected:
  Trials& Start(double budget_seconds) {
    return trials_.emplace(spec_, dimensions_, machine_, budget_seconds, out_);
  }

  Spec spec_ = TuneSpec();
  Dimensions dimensions_ = DimensionsFrom(spec_);
  FakeMachine machine_;
  std::ostringstream out_;
  std::optional<Trials> trials_;
  const Candidate defaults_ = LaunchersDefaults(dimensions_);
  const Candidate fast_ = {.options = {0, 1, 0, 0}};
  const Candidate je_ = {.options = {0, 0, 0, 1}};
};

TEST_F(TrialsTest, DisturbedRunIsRepeated) {
  machine_.busy = [](int run) { return run == 1; };
  Trials& trials = Start(900);
  ASSERT_TRUE(trials.RunRound(0, {defaults_, fast_, je_}).ok());
  ASSERT_EQ(machine_.runs.size(), 4u);
  EXPECT_EQ(machine_.runs[2].setting, "blas=fast");
  EXPECT_FALSE(trials.RoundsOf(fast_).at(0).disturbed);
  EXPECT_EQ(trials.counts().runs, 4);
  EXPECT_EQ(trials.counts().disturbed, 1);
  EXPECT_EQ(trials.counts().repeated, 1);
  EXPECT_THAT(out_.str(),
              HasSubstr("[2] blas=fast: 100 items/s, 5.0 s "
                        "(disturbed: other programs used 0.40 CPUs)\n"));
}

TEST_F(TrialsTest, RunThatStaysDisturbedIsMarked) {
  machine_.busy = [](int run) { return run < 3; };
  Trials& trials = Start(900);
  ASSERT_TRUE(trials.RunRound(0, {defaults_, fast_}).ok());
  ASSERT_EQ(machine_.runs.size(), 4u);
  EXPECT_TRUE(trials.RoundsOf(defaults_).at(0).disturbed);
  EXPECT_FALSE(trials.RoundsOf(fast_).at(0).disturbed);
}

TEST_F(TrialsTest, UselessRepetitionsEndUntilTheMachineIsQuiet) {
  machine_.busy = [](int run) { return run < 20; };
  Trials& trials = Start(9000);
  for (int round = 0; round < 10; ++round) {
    ASSERT_TRUE(trials.RunRound(round, {defaults_, fast_}).ok());
  }
  EXPECT_EQ(trials.counts().repeated, 4);
  EXPECT_EQ(machine_.runs.size(), 24u);
  machine_.busy = [](int run) { return run == 25; };
  ASSERT_TRUE(trials.RunRound(10, {defaults_, fast_}).ok());
  EXPECT_EQ(trials.counts().repeated, 5);
}

TEST_F(TrialsTest, RepetitionsTakeAtMostAFifthOfTheTime) {
  // Every second run is disturbed, so that repetitions are useful.
  machine_.busy = [](int run) { return run % 2 == 0; };
  Trials& trials = Start(100);
  for (int round = 0; round < 8; ++round) {
    ASSERT_TRUE(trials.RunRound(round, {defaults_, fast_}).ok());
  }
  EXPECT_EQ(trials.counts().repeated, 3);  // of 5.3 s each
}

TEST_F(TrialsTest, FailedCandidateIsNotRunAgain) {
  machine_.speed = [](const std::string& setting) {
    return setting == "blas=fast" ? 0.0 : 100.0;
  };
  Trials& trials = Start(900);
  for (int round = 0; round < 2; ++round) {
    ASSERT_TRUE(trials.RunRound(round, {defaults_, fast_}).ok());
  }
  EXPECT_EQ(machine_.runs.size(), 3u);
  EXPECT_EQ(trials.RoundsOf(fast_).at(0).failure, "it fails");
}

TEST_F(TrialsTest, FailedRunOfTheFirstCandidateIsRepeatedOnce) {
  machine_.speed = [this](const std::string&) {
    return machine_.runs.size() == 1 || machine_.runs.size() > 3 ? 0.0 : 100.0;
  };
  Trials& trials = Start(900);
  ASSERT_TRUE(trials.RunRound(0, {defaults_, fast_}).ok());
  EXPECT_EQ(trials.RoundsOf(defaults_).at(0).items_per_second, 100);
  EXPECT_EQ(machine_.runs.size(), 3u);
  ASSERT_TRUE(trials.RunRound(1, {defaults_}).ok());
  EXPECT_EQ(machine_.runs.size(), 5u);
  EXPECT_EQ(trials.RoundsOf(defaults_).at(1).failure, "it fails");
  EXPECT_EQ(trials.counts().repeated, 0);
}

TEST_F(TrialsTest, FailedRepetitionChangesNothing) {
  machine_.busy = [](int) { return true; };
  machine_.speed = [this](const std::string&) {
    return machine_.runs.size() == 2 ? 0.0 : 100.0;
  };
  Trials& trials = Start(900);
  ASSERT_TRUE(trials.RunRound(0, {defaults_}).ok());
  EXPECT_EQ(machine_.runs.size(), 2u);
  EXPECT_EQ(trials.RoundsOf(defaults_).at(0).items_per_second, 100);
}

TEST_F(TrialsTest, ReservedTimeIsNotUsed) {
  machine_.seconds = [](int run) { return run == 0 ? 10.0 : 60.0; };
  Trials& trials = Start(100);
  ASSERT_TRUE(
      trials.RunRound(0, {defaults_, fast_, je_}, {.seconds = 70}).ok());
  // blas=fast is ended, and then no time is left for the other.
  EXPECT_EQ(machine_.runs.size(), 2u);
  EXPECT_TRUE(trials.RoundsOf(fast_).empty());
  EXPECT_NEAR(trials.seconds_left(), 70, 0.5);
  EXPECT_THAT(out_.str(), HasSubstr("[2] blas=fast: took too long\n"));
}

TEST_F(TrialsTest, EveryLineShowsTheRemainingTime) {
  machine_.seconds = [](int run) { return run == 0 ? 9.7 : 19.7; };
  Trials& trials = Start(900);
  trials.PlanRuns(10);
  ASSERT_TRUE(trials.RunRound(0, {defaults_, fast_}).ok());
  EXPECT_THAT(out_.str(),
              HasSubstr("[1 of about 10, 1:30 left] hvdliterun's defaults: "));
  EXPECT_THAT(out_.str(), HasSubstr("[2 of about 10, 2:00 left] blas=fast: "));
  EXPECT_DOUBLE_EQ(trials.seconds_left(), 870);
  EXPECT_DOUBLE_EQ(trials.SecondsOf({fast_, je_}), 20 + 15);
}

TEST_F(TrialsTest, EarlierRoundsCountWithTheirTime) {
  ASSERT_TRUE(Start(900).RunRound(0, {defaults_, fast_}).ok());
  const double left = trials_->seconds_left();
  out_.str("");
  Trials& again = Start(900);
  ASSERT_TRUE(again.RunRound(0, {defaults_, fast_}).ok());
  EXPECT_EQ(machine_.runs.size(), 2u);
  EXPECT_DOUBLE_EQ(again.seconds_left(), left);
  EXPECT_EQ(out_.str(), "");
  // Both others have run in round 0, but je has not.
  EXPECT_EQ(again.WholeRound(0, {defaults_, fast_}), 0);
  EXPECT_EQ(again.WholeRound(0, {defaults_, fast_, je_}), 1);
}

}  // namespace
}  // namespace hvdlite::scaling_sweep
