#include <gtest/gtest.h>

#include "trainers/checkpoint.h"

namespace hvdlite::trainers {
namespace {

TEST(StepRangeTest, WholeTrainingIsAllEpochs) {
  const StepRange steps = StepsToTake({.epochs = 3}, {}, 10);
  EXPECT_EQ(steps.first, 0);
  EXPECT_EQ(steps.last, 30);
  EXPECT_EQ(steps.EpochOf(29), 2);
  EXPECT_EQ(steps.InEpoch(29), 9);
  EXPECT_EQ(steps.EndOfEpoch(0), 10);
  EXPECT_EQ(steps.EndOfEpoch(10), 20);
}

TEST(StepRangeTest, MaxStepsEndsWithinAnEpoch) {
  const StepRange steps = StepsToTake({.epochs = 3, .max_steps = 14}, {}, 10);
  EXPECT_EQ(steps.last, 14);
  EXPECT_EQ(steps.EndOfEpoch(10), 14);
  EXPECT_EQ(StepsToTake({.epochs = 1, .max_steps = 14}, {}, 10).last, 10);
}

TEST(StepRangeTest, GoesOnWhereTheCheckpointWasMade) {
  const Progress done = {.epoch = 1, .step = 4, .steps_per_epoch = 10};
  const StepRange steps = StepsToTake({.epochs = 3}, done, 10);
  EXPECT_EQ(steps.first, 14);
  const Progress after = steps.After(14);
  EXPECT_EQ(after.epoch, 1);
  EXPECT_EQ(after.step, 4);
  EXPECT_EQ(after.steps_per_epoch, 10);
  EXPECT_GE(StepsToTake({.epochs = 1}, done, 10).first,
            StepsToTake({.epochs = 1}, done, 10).last);
}

TEST(StepRangeTest, IsDueAfterSoManyEpochsAndAtTheEnd) {
  const StepRange steps = {.first = 0, .last = 35, .per_epoch = 10};
  EXPECT_FALSE(steps.IsDue(2, 10));
  EXPECT_TRUE(steps.IsDue(2, 20));
  EXPECT_FALSE(steps.IsDue(2, 30));
  EXPECT_TRUE(steps.IsDue(2, 35));
  EXPECT_FALSE(steps.IsDue(0, 20));
  EXPECT_FALSE(steps.IsDue(0, 35));
}

}  // namespace
}  // namespace hvdlite::trainers
