// Steps with Horovod, against values computed by hand, and with hvdlite.
#include "gtest/gtest.h"
#include "tools/scale_sim/horovod.h"
#include "tools/scale_sim/network.h"
#include "tools/scale_sim/prediction.h"

namespace hvdlite::scale_sim {
namespace {

// ---- A step with Horovod: two gradients of 1000 and 3000 bytes, which take 1
// and 3 ms to reduce. With two images they are ready after 40 and 60 ms.

TrainingModel TwoGradients() {
  TrainingModel model;
  model.compute.image_ms = 30;
  model.gradients.bytes = {1000, 3000};
  model.gradients.ready_fraction = {0.5, 1};
  model.allreduce.software_ns_per_byte = 1000;
  return model;
}

HorovodOptions WithoutCycles() {
  HorovodOptions options;
  options.cycle_ms = 0;
  return options;
}

double StepMs(const TrainingModel& model, const HorovodOptions& options) {
  return 1e3 * HorovodStep(model, options, 2, 2).step;
}

TEST(HorovodStepTest, OneRankOnlyComputes) {
  TrainingModel model = TwoGradients();
  model.compute.starved_share = 0.5;
  const StepTime time = HorovodStep(model, WithoutCycles(), 2, 1);
  EXPECT_DOUBLE_EQ(time.step, 0.060);
  EXPECT_EQ(time.exposed, 0);
}

TEST(HorovodStepTest, ComputationWaitsWhileAnAllreduceRuns) {
  const StepTime time = HorovodStep(TwoGradients(), WithoutCycles(), 2, 2);
  EXPECT_NEAR(time.step, 0.064, 1e-12);
  EXPECT_NEAR(time.computation, 0.060, 1e-12);
  EXPECT_NEAR(time.communication, 0.004, 1e-12);
  EXPECT_NEAR(time.exposed, 0.004, 1e-12);
  EXPECT_EQ(time.batches, 2);
}

TEST(HorovodStepTest, OverlapHidesAllButTheLastAllreduce) {
  HorovodOptions options = WithoutCycles();
  options.overlap = 1;
  EXPECT_NEAR(StepMs(TwoGradients(), options), 63, 1e-9);
  options.overlap = 0.5;
  EXPECT_NEAR(StepMs(TwoGradients(), options), 63.5, 1e-9);
}

TEST(HorovodStepTest, StarvedThreadsSlowAllComputation) {
  TrainingModel model = TwoGradients();
  model.compute.starved_share = 0.5;
  EXPECT_NEAR(StepMs(model, WithoutCycles()), 2 * 60 + 4, 1e-9);
}

TEST(HorovodStepTest, TensorsWaitForTheNextCycle) {
  HorovodOptions options;
  options.cycle_ms = 7;
  // The first at 42 ms, the other three cycles after 43 ms.
  EXPECT_NEAR(StepMs(TwoGradients(), options), 64 + 3, 1e-9);
}

TEST(HorovodStepTest, SlowestRankDecides) {
  TrainingModel model = TwoGradients();
  model.compute.jitter = 0.1;
  EXPECT_NEAR(StepMs(model, WithoutCycles()), 60 * 1.15 + 4, 1e-9);
}

TEST(HorovodStepTest, TensorsThatAreReadyTogetherAreFusedUpToTheThreshold) {
  TrainingModel model = TwoGradients();
  model.gradients.ready_fraction = {1, 1};
  HorovodOptions options = WithoutCycles();
  EXPECT_EQ(HorovodStep(model, options, 2, 2).batches, 1);
  options.fusion_bytes = 3999;
  EXPECT_EQ(HorovodStep(model, options, 2, 2).batches, 2);
}

TEST(HorovodStepTest, RootHearsFromEveryRankBeforeABatch) {
  TrainingModel model = TwoGradients();
  model.gradients = {.name = "", .bytes = {4}, .ready_fraction = {1}};
  model.allreduce.software_ns_per_byte = 0;
  model.allreduce.between_nodes = {.latency_us = 0, .overhead_us = 100};
  // Reports of 8 others, and answers to them, and one exchange per doubling.
  EXPECT_NEAR(1e6 * HorovodStep(model, WithoutCycles(), 2, 9).exposed,
              (8 + 8 + 2) * 100 + (3 + 2) * 200, 1e-6);
}

// ---- A step with hvdlite.

TrainingModel Resnet50() {
  TrainingModel model;
  model.compute.image_ms = 2;
  model.gradients = Resnet50GradientSet(10);
  model.allreduce.within_node = SharedMemoryLink();
  model.allreduce.between_nodes = *LinkPreset("tofu");
  model.allreduce.software_ns_per_byte = 0.5;
  return model;
}

StepTime Hvdlite(const TrainingModel& model, const HvdliteOptions& options,
                 int ranks) {
  const auto time = HvdliteStep(model, options, 100, ranks);
  EXPECT_TRUE(time.ok()) << time.status();
  return time.ok() ? *time : StepTime();
}

TEST(HvdliteStepTest, OneRankOnlyComputes) {
  EXPECT_DOUBLE_EQ(Hvdlite(Resnet50(), {}, 1).step, 0.2);
}

TEST(HvdliteStepTest, HidesCommunicationBehindBackward) {
  TrainingModel model = Resnet50();
  model.compute.image_ms = 5;
  const StepTime time = Hvdlite(model, {.overlap = true}, 8);
  EXPECT_NEAR(time.computation, 0.5, 1e-6);
  EXPECT_NEAR(time.exposed, time.step - time.computation, 1e-9);
  // 94 MB three times over.
  EXPECT_NEAR(time.communication, 3 * 94.1e6 * 0.65e-9, 0.01);
  EXPECT_GT(time.batches, 5);
  EXPECT_LT(time.exposed, 0.25 * time.communication);
}

TEST(HvdliteStepTest, WithoutOverlapAllCommunicationIsExposed) {
  const StepTime time = Hvdlite(Resnet50(), {}, 8);
  EXPECT_GE(time.exposed, time.communication);
  EXPECT_EQ(time.batches, 2);  // of 64 MiB and the rest
}

TEST(HvdliteStepTest, StarvedThreadsSlowComputation) {
  TrainingModel model = Resnet50();
  model.compute.starved_share = 0.2;
  EXPECT_NEAR(Hvdlite(model, {}, 8).computation, 0.25, 1e-6);
}

TEST(HvdliteStepTest, FewerSimulatedRanksGiveNearlyTheSameStep) {
  HvdliteOptions options = {.overlap = true};
  const StepTime all = Hvdlite(Resnet50(), options, 128);
  options.max_simulated_ranks = 16;
  const StepTime few = Hvdlite(Resnet50(), options, 128);
  EXPECT_NEAR(few.step, all.step, 1e-3 * all.step);
  EXPECT_NE(few.step, all.step);
}

TEST(HvdliteStepTest, FewerSimulatedRanksHaveTheStragglersOfAll) {
  TrainingModel model = Resnet50();
  model.compute.jitter = 0.05;
  const HvdliteOptions options = {.steps = 40, .max_simulated_ranks = 8};
  EXPECT_NEAR(Hvdlite(model, options, 256).computation,
              0.2 * (1 + 0.05 * ExpectedExponentialMaximum(256)), 0.008);
}

TEST(HvdliteStepTest, JitterMakesTheSlowestRankSlowerTheMoreThereAre) {
  TrainingModel model = Resnet50();
  model.compute.jitter = 0.05;
  HvdliteOptions options;
  options.steps = 40;
  const double four = Hvdlite(model, options, 4).computation;
  EXPECT_NEAR(four, 0.2 * (1 + 0.05 * ExpectedExponentialMaximum(4)), 0.008);
  EXPECT_EQ(Hvdlite(model, options, 4).step, Hvdlite(model, options, 4).step);
}

}  // namespace
}  // namespace hvdlite::scale_sim
