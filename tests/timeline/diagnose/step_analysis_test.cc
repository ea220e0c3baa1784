#include "timeline/diagnose/step_analysis.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "tests/testing/fakes/fake_training.h"

namespace hvdlite::timeline {
namespace {

using ::testing::AllOf;
using ::testing::ElementsAre;
using ::testing::Field;
using ::testing::SizeIs;

PartTimes Parts(int64_t computing_us, int64_t input_us, int64_t other_us,
                int64_t ranks_us, int64_t progress_us, int64_t data_us,
                int64_t copies_us) {
  PartTimes parts = {computing_us, input_us, other_us, ranks_us,
                     progress_us,  data_us,  copies_us};
  for (int64_t& part : parts) part *= 1000;
  return parts;
}

TEST(StepAnalysisTest, PartsOfAStepAddUpAndShowWhatWasWaitedFor) {
  FakeTraining training;
  training.input_us = [](int64_t, int64_t) { return 500; };
  training.computing_us = [](int64_t rank, int64_t) {
    return rank == 0 ? 10'000 : 13'000;
  };
  training.buckets = 2;
  const StepAnalysis analysis = AnalyzeSteps(MakeTrace(training));
  EXPECT_EQ(analysis.source, StepSource::kRecorded);
  EXPECT_TRUE(analysis.knows_waits);
  ASSERT_THAT(analysis.steps, SizeIs(40));
  for (const RankStep& step : analysis.steps) {
    EXPECT_EQ(step.duration_ns(), 14'020'000);
    EXPECT_EQ(step.parts, step.rank == 0
                              ? Parts(10'000, 500, 0, 3'000, 40, 400, 80)
                              : Parts(13'000, 500, 0, 0, 40, 400, 80));
    EXPECT_EQ(step.hidden_ns, 0);
  }
  ASSERT_THAT(analysis.buckets, SizeIs(40));
  EXPECT_EQ(analysis.buckets[0].last_rank, 1);
  EXPECT_EQ(analysis.buckets[0].lateness_ns, 3'000'000);
  EXPECT_EQ(analysis.buckets[0].collective, "ALLREDUCE");
  EXPECT_EQ(analysis.buckets[0].ranks[1].data_ns, 200'000);
}

TEST(StepAnalysisTest, BucketsDuringComputingAreHidden) {
  TraceMaker maker;
  maker.AddRank(0, 2, "node0");
  maker.AddSlice(0, kStepTrack, "TRAINING_STEP", 0, 100, {.step = 1});
  maker.AddSlice(0, kUserTrack, kWaitForGradients, 80, 100);
  maker.AddSlice(0, kBucketTrack, "ALLREDUCE_BUCKET", 60, 90, {.bucket = 1});
  const StepAnalysis analysis = AnalyzeSteps(maker.trace);
  ASSERT_THAT(analysis.steps, SizeIs(1));
  EXPECT_EQ(analysis.steps[0].hidden_ns, 20'000);
  // The waiting thread woke up late after the bucket.
  EXPECT_EQ(analysis.steps[0].parts, Parts(80, 0, 0, 0, 10, 10, 0));
}

TEST(StepAnalysisTest, EvaluationIsNotComputingAndItsWaitsCountAsWaits) {
  TraceMaker maker;
  maker.AddRank(0, 1, "node0");
  maker.AddSlice(0, kStepTrack, "TRAINING_STEP", 0, 100, {.step = 1});
  maker.AddSlice(0, kUserTrack, "EVALUATE", 10, 40);
  maker.AddSlice(0, kUserTrack, "LOAD_BATCH", 50, 60);
  maker.AddSlice(0, kUserTrack, "LOAD_BATCH", 55, 65);
  maker.AddSlice(0, kUserTrack, "WAIT", 90, 95);
  const StepAnalysis analysis = AnalyzeSteps(maker.trace);
  EXPECT_EQ(analysis.steps.at(0).parts, Parts(50, 15, 30, 0, 5, 0, 0));
}

TEST(StepAnalysisTest, LastRankIsKnownFromRankZeroInATraceOfOneRank) {
  TraceMaker maker;
  maker.AddRank(1, 3, "node0");
  maker.AddSlice(1, kStepTrack, "TRAINING_STEP", 0, 100, {.step = 1});
  maker.AddSlice(1, kUserTrack, kWaitForGradients, 20, 100);
  maker.AddSlice(1, kFirstTensorTrack, "NEGOTIATE_ALLREDUCE", 10, 80,
                 {.last_rank = 2, .lateness_us = 50});
  maker.AddSlice(1, kFirstTensorTrack, "ALLREDUCE", 80, 100, {.bucket = 7});
  maker.AddSlice(1, kBucketTrack, "ALLREDUCE_BUCKET", 80, 100, {.bucket = 7});
  const StepAnalysis analysis = AnalyzeSteps(maker.trace);
  ASSERT_THAT(analysis.buckets, SizeIs(1));
  EXPECT_EQ(analysis.buckets[0].last_rank, 2);
  EXPECT_EQ(analysis.buckets[0].lateness_ns, 50'000);
  EXPECT_EQ(analysis.steps.at(0).parts, Parts(20, 0, 0, 40, 20, 20, 0));
}

TEST(StepAnalysisTest, WithoutStepsTheWholeTraceIsOneStep) {
  TraceMaker maker;
  maker.AddSlice(3, 0, "ALLREDUCE", 10, 30);
  maker.AddSlice(3, 0, "ALLREDUCE", 50, 60);
  const StepAnalysis analysis = AnalyzeSteps(maker.trace);
  EXPECT_EQ(analysis.source, StepSource::kWhole);
  EXPECT_FALSE(analysis.knows_waits);
  EXPECT_THAT(analysis.steps,
              ElementsAre(AllOf(Field(&RankStep::rank, 3),
                                Field(&RankStep::start_ns, 10'000))));
  EXPECT_TRUE(AnalyzeSteps(Trace()).steps.empty());
}

TEST(StepAnalysisTest, ProfilersStepsAreSteps) {
  TraceMaker maker;
  maker.AddSlice(9, 1, "ProfilerStep#4", 0, 100);
  maker.AddSlice(9, 1, "enumerate(DataLoader)#_Iter.__next__", 0, 30);
  maker.AddSlice(9, 2, "gloo:all_reduce", 40, 60);
  StepAnalysis analysis = AnalyzeSteps(maker.trace);
  EXPECT_EQ(analysis.source, StepSource::kProfiler);
  EXPECT_EQ(analysis.steps.at(0).rank, 9);
  EXPECT_EQ(analysis.steps.at(0).parts, Parts(50, 30, 0, 0, 0, 20, 0));
  EXPECT_EQ(analysis.steps.at(0).hidden_ns, 0);
  // A collective beside an operator counts as hidden.
  maker.AddSlice(9, 3, "autograd::engine::evaluate_function: Backward0", 45,
                 55);
  maker.AddSlice(9, 3, "aten::conv2d", 50, 52);
  maker.trace.profiled = ProfiledRank{.rank = 1, .world_size = 2};
  analysis = AnalyzeSteps(maker.trace);
  EXPECT_EQ(analysis.steps.at(0).rank, 1);
  EXPECT_EQ(analysis.steps.at(0).parts, Parts(60, 30, 0, 0, 0, 10, 0));
  EXPECT_EQ(analysis.steps.at(0).hidden_ns, 10'000);
}

TEST(StepAnalysisTest, FirstStepIsNotSteadyUnlessItIsTheOnlyOne) {
  FakeTraining training;
  training.ranks = 1;
  training.steps = 3;
  StepAnalysis analysis = AnalyzeSteps(MakeTrace(training));
  EXPECT_THAT(analysis.SteadySteps(), ElementsAre(Field(&RankStep::number, 2),
                                                  Field(&RankStep::number, 3)));
  training.steps = 1;
  analysis = AnalyzeSteps(MakeTrace(training));
  EXPECT_THAT(analysis.SteadySteps(), SizeIs(1));
}

TEST(StepAnalysisTest, StepsWithTheSameNumberAreAGroup) {
  std::vector<RankStep> steps;
  for (const auto& [number, rank] :
       std::vector<std::pair<int64_t, int64_t>>{{2, 0}, {2, 1}, {3, 1}}) {
    steps.push_back({.rank = rank, .number = number});
  }
  const std::vector<absl::Span<const RankStep>> groups = ByNumber(steps);
  ASSERT_THAT(groups, ElementsAre(SizeIs(2), SizeIs(1)));
  EXPECT_EQ(groups[1].data(), &steps[2]);
  EXPECT_THAT(ByNumber({}), SizeIs(0));
}

TEST(StepAnalysisTest, CountersBecomePartsOfACore) {
  FakeTraining training;
  training.counters = [](int64_t rank) {
    return std::vector<std::pair<std::string, std::vector<TraceArg>>>{
        {"PROGRESS_THREAD",
         {{"cpu_us", 100'000},
          {"delay_us", 300'000 * rank},
          {"involuntary", 50}}},
        {"COMPUTE_THREADS",
         {{"cpu_us", 900'000}, {"delay_us", 0}, {"threads", 2}}},
        {"MEMORY", {{"minor_faults", 5'000}, {"system_cpu_us", 250'000}}}};
  };
  const StepAnalysis analysis = AnalyzeSteps(MakeTrace(training));
  ASSERT_THAT(analysis.resources, SizeIs(2));
  const ResourceUse& use = analysis.resources.at(1);
  EXPECT_NEAR(use.progress_cpu, 0.1, 0.01);
  EXPECT_NEAR(use.progress_delay, 0.3, 0.01);
  EXPECT_NEAR(use.compute_cpu, 0.9, 0.01);
  EXPECT_NEAR(use.threads, 2, 1e-9);
  EXPECT_NEAR(use.minor_faults, 5'000, 50);
  EXPECT_NEAR(use.system_cpu, 0.25, 0.01);
  EXPECT_NEAR(analysis.resources.at(0).progress_delay, 0, 1e-9);
}

}  // namespace
}  // namespace hvdlite::timeline
