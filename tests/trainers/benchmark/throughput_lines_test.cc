#include <gtest/gtest.h>

#include <limits>
#include <stdexcept>

#include "trainers/benchmark/benchmark_report.h"

namespace hvdlite::trainers {
namespace {

TEST(ThroughputLinesTest, FirstStepHasNeitherUncertaintyNorJitter) {
  EXPECT_EQ(StepHeader(), "Step\tImg/sec\ttotal_loss");
  EXPECT_EQ(StepLine(1, StepSpeedOf(64, {0.5}), 7.6543),
            "1\timages/sec: 128.0 +/- 0.0 (jitter = 0.0)\t7.654");
}

TEST(ThroughputLinesTest, StepLineHasTheSpeedOfTheStepsSoFar) {
  // Speeds are 100 50 200 100, the mean time is 1.125 s, so the mean speed is
  // 88.9 images/s. The standard error is sqrt(2968.75) / sqrt(4). Distances
  // from the median are 0 50 100 0.
  EXPECT_EQ(StepLine(40, StepSpeedOf(100, {1, 2, 0.5, 1}), 0.5),
            "40\timages/sec: 88.9 +/- 27.2 (jitter = 37.1)\t0.500");
}

TEST(ThroughputLinesTest, NanLossIsPrinted) {
  EXPECT_EQ(StepLine(1, StepSpeedOf(1, {1}),
                     std::numeric_limits<double>::quiet_NaN()),
            "1\timages/sec: 1.0 +/- 0.0 (jitter = 0.0)\tnan");
}

TEST(ThroughputLinesTest, TotalIsBetween64Dashes) {
  EXPECT_EQ(TotalBlock(123.454),
            "----------------------------------------------------------------\n"
            "total images/sec: 123.45\n"
            "----------------------------------------------------------------");
}

TEST(ThroughputLinesTest, HorovodsLinesHaveSpeedOfRankAndTotal) {
  EXPECT_EQ(IterationLine(0, 12.34), "Iter #0: 12.3 img/sec per CPU");
  // The mean is 12, the population's sd 2: 1.96 * 2 = 3.92.
  EXPECT_EQ(RankSpeedLine({10, 14}), "Img/sec per CPU: 12.0 +-3.9");
  EXPECT_EQ(TotalSpeedLine(2, {10, 14}),
            "Total img/sec on 2 CPU(s): 24.0 +-7.8");
}

TEST(ThroughputLinesTest, NoStepsAreAnError) {
  EXPECT_THROW(StepSpeedOf(1, {}), std::invalid_argument);
  EXPECT_THROW(RankSpeedLine({}), std::invalid_argument);
  EXPECT_THROW(TotalSpeedLine(2, {}), std::invalid_argument);
}

}  // namespace
}  // namespace hvdlite::trainers
