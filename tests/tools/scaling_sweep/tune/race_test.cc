#include "tools/scaling_sweep/tune/race.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "support/machine.h"

namespace hvdlite::scaling_sweep {
namespace {

using ::testing::ElementsAre;
using ::testing::SizeIs;

Trial Ran(double speed, bool disturbed = false) {
  return {.items_per_second = speed, .disturbed = disturbed};
}

TEST(RaceTest, RunIsDisturbedIfOtherProgramsWereBusy) {
  Sample sample;
  EXPECT_EQ(WasDisturbed(sample), std::nullopt);
  sample.machine["other programs"] = support::DescribeOtherPrograms(0.4, 2);
  EXPECT_EQ(WasDisturbed(sample), true);
  sample.machine["other programs"] = support::DescribeOtherPrograms(0.02, 2);
  EXPECT_EQ(WasDisturbed(sample), false);
}

TEST(RaceTest, RatiosComeFromRoundsInWhichBothSucceeded) {
  const Rounds one = {{0, Ran(2)}, {1, {}}, {2, Ran(4)}, {4, Ran(9)}};
  const Rounds other = {{0, Ran(1)}, {1, Ran(1)}, {2, Ran(2)}, {3, Ran(1)}};
  EXPECT_THAT(RatiosOf(one, other).ratios, ElementsAre(2, 2));
  EXPECT_THAT(RatiosOf(one, other, /*first=*/1).ratios, ElementsAre(2));
  EXPECT_DOUBLE_EQ(MeanRatio(RatiosOf(one, other)).value(), 2);
  EXPECT_EQ(MeanRatio(RatiosOf(one, {})), std::nullopt);
  EXPECT_TRUE(HasFailed(one));
  EXPECT_FALSE(HasFailed(other));
}

TEST(RaceTest, DisturbedRoundsCountOnlyIfThereAreTooFewOthers) {
  const Rounds other = {
      {0, Ran(1)}, {1, Ran(1)}, {2, Ran(1, true)}, {3, Ran(1)}};
  Rounds one = {{0, Ran(2)}, {1, Ran(2)}, {2, Ran(7)}, {3, Ran(2)}};
  PairedRatios paired = RatiosOf(one, other);
  EXPECT_THAT(paired.ratios, ElementsAre(2, 2, 2));
  EXPECT_EQ(paired.pairs, 4);
  EXPECT_EQ(paired.disturbed, 1);
  EXPECT_FALSE(paired.rests_on_disturbed);
  one[3].disturbed = true;
  paired = RatiosOf(one, other);
  EXPECT_THAT(paired.ratios, SizeIs(4));
  EXPECT_EQ(paired.disturbed, 2);
  EXPECT_TRUE(paired.rests_on_disturbed);
}

TEST(RaceTest, ClearlySlowerNeedsAnIntervalBelow1) {
  EXPECT_TRUE(IsClearlySlower({.ratios = {0.9, 0.91, 0.89}}));
  EXPECT_FALSE(IsClearlySlower({.ratios = {0.9, 0.91}}));
  EXPECT_FALSE(IsClearlySlower({.ratios = {0.9, 1.1, 0.89}}));
}

TEST(RaceTest, RunsOfARaceAreTheSumOfItsStages) {
  // 8 and the defaults; 5, with a combination; then 3, 2 and 1, twice each.
  EXPECT_EQ(RunsOfRace(8, 1), 9 + 6 + 2 * 4 + 2 * 3 + 2 * 2);
  EXPECT_EQ(RunsOfRace(8, 3) - RunsOfRace(8, 1), 18);
  EXPECT_EQ(RunsOfRace(0, 1), 0);
}

}  // namespace
}  // namespace hvdlite::scaling_sweep
