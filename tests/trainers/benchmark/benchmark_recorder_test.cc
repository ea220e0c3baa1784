#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <limits>
#include <stdexcept>

#include "support/input_error.h"
#include "trainers/benchmark/benchmark_report.h"

namespace hvdlite::trainers {
namespace {

using ::testing::AllOf;
using ::testing::HasSubstr;
using ::testing::ThrowsMessage;

// A recorder with a clock that the test sets.
class BenchmarkRecorderTest : public ::testing::Test {
 protected:
  BenchmarkRecorder Recorder(const ObservationPlan& plan) {
    return BenchmarkRecorder(plan, [this] { return now_seconds_; });
  }

  // Runs an observation of equal batches.
  void Observe(BenchmarkRecorder& recorder, double batch_seconds) {
    recorder.BeginObservation();
    do {
      now_seconds_ += batch_seconds;
    } while (!recorder.AddBatch(/*loss=*/1));
  }

  double now_seconds_ = 1000;
};

TEST_F(BenchmarkRecorderTest, FirstObservationsAreSkipped) {
  BenchmarkRecorder recorder =
      Recorder({.repeat = 4, .number = 2, .skip = 2, .batch_size = 8});
  for (const double seconds : {100.0, 50.0, 1.0, 2.0}) {
    EXPECT_FALSE(recorder.done());
    Observe(recorder, seconds);
  }
  EXPECT_TRUE(recorder.done());
  EXPECT_THAT(recorder.observation_seconds(), ::testing::ElementsAre(2, 4));
  const support::Summary seconds = recorder.train_seconds();
  EXPECT_EQ(seconds.samples, 2);
  EXPECT_EQ(seconds.min, 2);
  EXPECT_EQ(seconds.max, 4);
  EXPECT_EQ(seconds.mean, 3);
  EXPECT_EQ(seconds.sd, 1);
}

TEST_F(BenchmarkRecorderTest, TimeBetweenObservationsDoesNotCount) {
  BenchmarkRecorder recorder = Recorder({.repeat = 2, .number = 3, .skip = 0});
  Observe(recorder, 1);
  now_seconds_ += 1000;
  Observe(recorder, 1);
  EXPECT_EQ(recorder.train_seconds().max, 3);
}

TEST_F(BenchmarkRecorderTest, ObservationEndsWithItsLastBatch) {
  BenchmarkRecorder recorder = Recorder({.repeat = 1, .number = 3, .skip = 0});
  recorder.BeginObservation();
  EXPECT_FALSE(recorder.AddBatch(1));
  EXPECT_FALSE(recorder.AddBatch(1));
  EXPECT_TRUE(recorder.AddBatch(1));
}

TEST_F(BenchmarkRecorderTest, StatisticsAreZeroBeforeAnObservationCounts) {
  BenchmarkRecorder recorder = Recorder({.repeat = 2, .number = 1, .skip = 1});
  Observe(recorder, 1);
  EXPECT_EQ(recorder.train_seconds().samples, 0);
}

TEST_F(BenchmarkRecorderTest, LastHundredLossesAreKept) {
  BenchmarkRecorder recorder =
      Recorder({.repeat = 1, .number = 102, .skip = 0});
  recorder.BeginObservation();
  for (int batch = 0; batch < 102; ++batch) recorder.AddBatch(batch);
  ASSERT_EQ(recorder.batch_losses().size(), 100U);
  EXPECT_EQ(recorder.batch_losses().front(), 2);
  EXPECT_EQ(recorder.batch_losses().back(), 101);
}

TEST_F(BenchmarkRecorderTest, FirstNonFiniteLossIsRecorded) {
  BenchmarkRecorder recorder = Recorder({.repeat = 2, .number = 2, .skip = 1});
  recorder.BeginObservation();
  recorder.AddBatch(0.5);
  EXPECT_EQ(recorder.first_non_finite_batch(), std::nullopt);
  recorder.AddBatch(std::numeric_limits<double>::quiet_NaN());
  recorder.BeginObservation();
  recorder.AddBatch(std::numeric_limits<double>::infinity());
  EXPECT_EQ(recorder.first_non_finite_batch(), 1);

  BenchmarkRecorder infinite = Recorder({.repeat = 1, .number = 1, .skip = 0});
  infinite.BeginObservation();
  infinite.AddBatch(-std::numeric_limits<double>::infinity());
  EXPECT_EQ(infinite.first_non_finite_batch(), 0);
}

TEST_F(BenchmarkRecorderTest, CallsInWrongOrderAreErrors) {
  BenchmarkRecorder recorder = Recorder({.repeat = 1, .number = 1, .skip = 0});
  EXPECT_THROW(recorder.AddBatch(1), std::logic_error);
  recorder.BeginObservation();
  EXPECT_THROW(recorder.BeginObservation(), std::logic_error);
  recorder.AddBatch(1);
  EXPECT_THROW(recorder.AddBatch(1), std::logic_error);
  EXPECT_THROW(recorder.BeginObservation(), std::logic_error);
}

TEST_F(BenchmarkRecorderTest, PlanWithoutObservationsIsAnError) {
  EXPECT_THAT([&] { Recorder({.repeat = 10}); },
              ThrowsMessage<support::InputError>(AllOf(
                  HasSubstr("--repeat is 10"), HasSubstr("more than 10"))));
}

TEST_F(BenchmarkRecorderTest, NumbersBelowTheMinimumAreErrors) {
  EXPECT_THAT([&] { Recorder({.repeat = 0, .skip = -1}); },
              ThrowsMessage<support::InputError>(HasSubstr("--repeat is 0")));
  EXPECT_THAT([&] { Recorder({.number = 0}); },
              ThrowsMessage<support::InputError>(HasSubstr("--number is 0")));
  EXPECT_THAT(
      [&] { Recorder({.batch_size = 0}); },
      ThrowsMessage<support::InputError>(HasSubstr("--batch-size is 0")));
  EXPECT_THAT([&] { Recorder({.skip = -1}); },
              ThrowsMessage<support::InputError>(HasSubstr("-1 first observations")));
}

TEST(SteadySecondsTest, NeverDecreases) {
  const double before = support::WallSeconds();
  EXPECT_GE(support::WallSeconds(), before);
}

}  // namespace
}  // namespace hvdlite::trainers
