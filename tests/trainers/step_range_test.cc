#include <gtest/gtest.h>

#include "trainers/checkpoint.h"

namespace hvdlite::trainers {
namespace {

// A sampler with epochs of 40 samples and 4 samples per step.
DistributedSampler SamplerAt(int64_t epoch, int64_t position) {
  DistributedSampler sampler(40, 4, 1, BatchOf::AllRanks);
  sampler.resume(epoch, position);
  return sampler;
}

TEST(StepRangeTest, WholeTrainingHasAllEpochs) {
  const StepRange steps = StepsToTake({.epochs = 3}, 0, SamplerAt(0, 0), 4);
  EXPECT_EQ(steps.first, 0);
  EXPECT_EQ(steps.last, 30);
  EXPECT_EQ(steps.EpochOf(29), 2);
  EXPECT_EQ(steps.InEpoch(29), 9);
  EXPECT_EQ(steps.EndOfEpoch(0), 10);
  EXPECT_EQ(steps.EndOfEpoch(10), 20);
}

TEST(StepRangeTest, MaxStepsCanEndWithinAnEpoch) {
  const DistributedSampler sampler = SamplerAt(0, 0);
  const StepRange steps =
      StepsToTake({.epochs = 3, .max_steps = 14}, 0, sampler, 4);
  EXPECT_EQ(steps.last, 14);
  EXPECT_EQ(steps.EndOfEpoch(10), 14);
  EXPECT_EQ(StepsToTake({.epochs = 1, .max_steps = 14}, 0, sampler, 4).last,
            10);
}

TEST(StepRangeTest, ContinuesAtTheCheckpoint) {
  const StepRange steps = StepsToTake({.epochs = 3}, 14, SamplerAt(1, 16), 4);
  EXPECT_EQ(steps.first, 14);
  EXPECT_EQ(steps.last, 30);
  EXPECT_EQ(steps.shift, 0);
  EXPECT_EQ(steps.EpochOf(14), 1);
  EXPECT_EQ(steps.InEpoch(14), 4);
  EXPECT_EQ(steps.EndOfEpoch(14), 20);
  const StepRange none = StepsToTake({.epochs = 1}, 14, SamplerAt(1, 16), 4);
  EXPECT_GE(none.first, none.last);
}

TEST(StepRangeTest, ContinuesWithStepsOfAnotherSize) {
  // 4 of 10 steps are done; the remaining 24 samples take 3 steps of up to 10.
  const StepRange steps = StepsToTake({.epochs = 3}, 14, SamplerAt(1, 16), 10);
  EXPECT_EQ(steps.first, 14);
  EXPECT_EQ(steps.per_epoch, 4);
  EXPECT_EQ(steps.EpochOf(14), 1);
  EXPECT_EQ(steps.EndOfEpoch(14), 17);
  EXPECT_EQ(steps.EpochOf(17), 2);
  EXPECT_EQ(steps.InEpoch(17), 0);
  EXPECT_EQ(steps.EndOfEpoch(17), 21);
  EXPECT_EQ(steps.last, 21);
}

TEST(StepRangeTest, CompleteEpochIsFollowedByTheNext) {
  for (const int64_t samples_per_step : {4, 10}) {
    const StepRange steps =
        StepsToTake({.epochs = 3}, 20, SamplerAt(1, 40), samples_per_step);
    EXPECT_EQ(steps.EpochOf(20), 2);
    EXPECT_EQ(steps.InEpoch(20), 0);
    EXPECT_EQ(steps.last, 20 + steps.per_epoch);
  }
}

TEST(StepRangeTest, IsDueEveryFewEpochsAndAtTheEnd) {
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
