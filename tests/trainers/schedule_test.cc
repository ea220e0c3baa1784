#include <gtest/gtest.h>

#include <cmath>

#include "trainers/step.h"

namespace hvdlite::trainers {
namespace {

TEST(LearningRateScheduleTest, WarmsUpFromBaseToBaseTimesWorldSize) {
  const LearningRateSchedule schedule = {
      .base = 0.1, .world_size = 4, .steps_per_epoch = 10, .warmup_epochs = 2};
  EXPECT_DOUBLE_EQ(schedule.At(0), 0.1);
  EXPECT_DOUBLE_EQ(schedule.At(10), 0.1 * 2.5);
  EXPECT_DOUBLE_EQ(schedule.At(20), 0.4);
  EXPECT_DOUBLE_EQ(schedule.At(1000), 0.4);
}

TEST(LearningRateScheduleTest, DropsAtEveryMilestone) {
  const LearningRateSchedule schedule = {.base = 0.1,
                                         .world_size = 2,
                                         .steps_per_epoch = 5,
                                         .milestones = {2, 3},
                                         .gamma = 0.5};
  EXPECT_DOUBLE_EQ(schedule.At(9), 0.2);
  EXPECT_DOUBLE_EQ(schedule.At(10), 0.1);
  EXPECT_DOUBLE_EQ(schedule.At(14), 0.1);
  EXPECT_DOUBLE_EQ(schedule.At(15), 0.05);
}

TEST(LearningRateScheduleTest, OneRankNeedsNoWarmUp) {
  const LearningRateSchedule schedule = {
      .base = 0.1, .world_size = 1, .steps_per_epoch = 10, .warmup_epochs = 5};
  EXPECT_DOUBLE_EQ(schedule.At(0), 0.1);
  EXPECT_DOUBLE_EQ(schedule.At(25), 0.1);
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
