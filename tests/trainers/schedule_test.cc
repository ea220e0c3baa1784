#include <gtest/gtest.h>

#include <cmath>

#include "trainers/step.h"

namespace hvdlite::trainers {
namespace {

TEST(LearningRateScheduleTest, WarmsUpFromBaseToBaseTimesScale) {
  const LearningRateSchedule schedule = {
      .base = 0.1, .scale = 4, .warmup_epochs = 2};
  EXPECT_DOUBLE_EQ(schedule.At(0), 0.1);
  EXPECT_DOUBLE_EQ(schedule.At(1), 0.1 * 2.5);
  EXPECT_DOUBLE_EQ(schedule.At(2), 0.4);
  EXPECT_DOUBLE_EQ(schedule.At(100), 0.4);
}

TEST(LearningRateScheduleTest, DropsAtEveryMilestone) {
  const LearningRateSchedule schedule = {
      .base = 0.1, .scale = 2, .milestones = {2, 3}, .gamma = 0.5};
  EXPECT_DOUBLE_EQ(schedule.At(1.8), 0.2);
  EXPECT_DOUBLE_EQ(schedule.At(2), 0.1);
  EXPECT_DOUBLE_EQ(schedule.At(2.8), 0.1);
  EXPECT_DOUBLE_EQ(schedule.At(3), 0.05);
}

TEST(LearningRateScheduleTest, OneRankNeedsNoWarmUp) {
  const LearningRateSchedule schedule = {
      .base = 0.1, .scale = 1, .warmup_epochs = 5};
  EXPECT_DOUBLE_EQ(schedule.At(0), 0.1);
  EXPECT_DOUBLE_EQ(schedule.At(2.5), 0.1);
}

TEST(LearningRateScheduleTest, OtherNumberOfRanksChangesItImmediatelyOrSlowly) {
  LearningRateSchedule schedule = {
      .base = 0.1, .scale = 2, .scale_before = 4, .rescaled_at = 3.5};
  EXPECT_DOUBLE_EQ(schedule.At(3.5), 0.2);
  schedule.rescaling_epochs = 2;
  EXPECT_DOUBLE_EQ(schedule.At(3.5), 0.4);
  EXPECT_DOUBLE_EQ(schedule.At(4.5), 0.3);
  EXPECT_DOUBLE_EQ(schedule.At(5.5), 0.2);
  EXPECT_DOUBLE_EQ(schedule.At(10), 0.2);
}

TEST(LearningRateScheduleTest, ScaleDependsOnRanksAndMode) {
  EXPECT_DOUBLE_EQ(LearningRateScale("linear", 9), 9);
  EXPECT_DOUBLE_EQ(LearningRateScale("sqrt", 9), 3);
  EXPECT_DOUBLE_EQ(LearningRateScale("none", 9), 1);
}

TEST(InverseSquareRootScheduleTest, RisesAndFallsAsPublished) {
  const InverseSquareRootSchedule schedule = {
      .factor = 1, .d_model = 256, .warmup_steps = 4000};
  EXPECT_NEAR(schedule.At(0), 1.0 / 16 * std::pow(4000, -1.5), 1e-15);
  EXPECT_NEAR(schedule.At(1999), 0.5 * schedule.At(3999), 1e-15);
  EXPECT_NEAR(schedule.At(3999), 1.0 / 16 / std::sqrt(4000), 1e-15);
  EXPECT_NEAR(schedule.At(15999), 0.5 * schedule.At(3999), 1e-15);
}

}  // namespace
}  // namespace hvdlite::trainers
