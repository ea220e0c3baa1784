#include "support/statistics.h"

#include <gtest/gtest.h>

#include <cmath>
#include <random>
#include <stdexcept>
#include <utility>
#include <vector>

namespace hvdlite::support {
namespace {

TEST(QuantileTest, InterpolatesBetweenNeighbours) {
  EXPECT_DOUBLE_EQ(Quantile({4, 1, 3, 10}, 0.5), 3.5);
  EXPECT_DOUBLE_EQ(Quantile({4, 1, 3, 10}, 0), 1);
  EXPECT_DOUBLE_EQ(Quantile({4, 1, 3, 10}, 1), 10);
  EXPECT_DOUBLE_EQ(Quantile({0, 100}, 0.99), 99);
  EXPECT_DOUBLE_EQ(Quantile({7}, 0.99), 7);
  EXPECT_EQ(Median({4, 1, 3, 2}), 2.5);
}

TEST(QuantileTest, AgreesWithNumpysPercentile) {
  EXPECT_DOUBLE_EQ(Quantile({40, 15, 50, 20, 35}, 0.4), 29);
  EXPECT_DOUBLE_EQ(Quantile({40, 15, 50, 20, 35}, 0.8), 42);
  EXPECT_DOUBLE_EQ(Quantile({40, 15, 50, 20, 35}, 0.9), 46);
}

TEST(QuantileTest, NoSamplesAreAnError) {
  EXPECT_THROW(Quantile({}, 0.5), std::invalid_argument);
}

TEST(StudentTest, AgreesWithPublishedTables) {
  EXPECT_NEAR(StudentT975(1), 12.706, 1e-3);
  EXPECT_NEAR(StudentT975(10), 2.228, 1e-3);
  EXPECT_NEAR(StudentT975(11), 2.201, 1e-3);
  EXPECT_NEAR(StudentT975(20), 2.086, 1e-3);
  EXPECT_NEAR(StudentT975(120), 1.980, 1e-3);
}

TEST(SampleStatisticsTest, StandardDeviationIsThatOfThePopulation) {
  // Mean 5, squared distances 9 1 1 1 0 0 4 16: their mean is 4.
  const Summary statistics = Summarise({2, 4, 4, 4, 5, 5, 7, 9});
  EXPECT_EQ(statistics.mean, 5);
  EXPECT_EQ(statistics.samples, 8);
  EXPECT_EQ(statistics.max, 9);
  EXPECT_EQ(statistics.min, 2);
  EXPECT_EQ(statistics.sd, 2);
  EXPECT_EQ(statistics.range(), 7);
}

TEST(SampleStatisticsTest, IntervalIsStudentsTAroundTheMean) {
  // Standard deviation 1, so the standard error is 1 / sqrt(3).
  const Summary three = Summarise({1, 2, 3});
  EXPECT_NEAR(three.high, 2 + 4.303 / std::sqrt(3.0), 1e-3);
  EXPECT_NEAR(three.low, 2 - 4.303 / std::sqrt(3.0), 1e-3);
  EXPECT_TRUE(std::isinf(Summarise({5}).high)) << "one sample has no spread";
}

TEST(SampleStatisticsTest, StandardDeviationOfCloseLargeValuesIsExact) {
  EXPECT_EQ(Summarise({1e9 + 1, 1e9 - 1}).sd, 1);
}

TEST(SampleStatisticsTest, StandardErrorFallsWithTheRootOfTheCount) {
  EXPECT_DOUBLE_EQ(StandardError({2, 4, 4, 4, 5, 5, 7, 9}), 2 / std::sqrt(8.0));
}

TEST(SampleStatisticsTest, MedianAbsoluteDeviationIgnoresAnOutlier) {
  // Median 2; distances 1 1 0 0 2 4 98.
  EXPECT_EQ(MedianAbsoluteDeviation({1, 1, 2, 2, 4, 6, 100}), 1);
  // Median 2.5; distances 1.5 0.5 0.5 1.5.
  EXPECT_EQ(MedianAbsoluteDeviation({1, 2, 3, 4}), 1);
  EXPECT_DOUBLE_EQ(Jitter({1, 1, 2, 2, 4, 6, 100}), 1.4826);
}

TEST(SampleStatisticsTest, TooFewSamplesAreRefused) {
  EXPECT_THROW(Summarise({}), std::invalid_argument);
  EXPECT_THROW(StandardError({}), std::invalid_argument);
  EXPECT_THROW(Jitter({}), std::invalid_argument);
}

TEST(BootstrapTest, SameSeedGivesTheSameInterval) {
  const std::vector<double> samples = {1, 2, 4, 8, 16};
  EXPECT_EQ(MedianInterval(samples, 3)->low, MedianInterval(samples, 3)->low);
  EXPECT_EQ(EstimateRatio({samples}, 3).interval->high,
            EstimateRatio({samples}, 3).interval->high);
  EXPECT_FALSE(MedianInterval({1}, 3).has_value());
}

// Values around 1 whose logarithms are nearly normal.
std::vector<double> Draw(size_t count, std::mt19937_64& random) {
  std::vector<double> values(count);
  for (double& value : values) {
    double sum = 0;  // of twelve uniform values
    for (int i = 0; i < 12; ++i) {
      sum += static_cast<double>(random() >> 11) / 9007199254740992.0;
    }
    value = std::exp(0.05 * (sum - 6));
  }
  return values;
}

// How often intervals contain the true value. A plain percentile interval of
// five pairs contains it in about 84 % of cases.
TEST(BootstrapTest, IntervalsOfFewPairsHaveTheStatedCoverage) {
  std::mt19937_64 random(7);
  constexpr int kTrials = 400;
  int held = 0;
  for (int trial = 0; trial < kTrials; ++trial) {
    const Interval interval = *EstimateRatio({Draw(5, random)}, 1).interval;
    held += interval.low <= 1 && 1 <= interval.high;
  }
  EXPECT_GE(held, 0.92 * kTrials);
  EXPECT_LE(held, 0.985 * kTrials);
}

TEST(BootstrapTest, IntervalsOfTwoMediansHaveTheStatedCoverage) {
  std::mt19937_64 random(7);
  for (const auto& [few, more] : {std::pair(2, 2), {2, 8}, {3, 3}, {5, 5}}) {
    constexpr int kTrials = 200;
    int held = 0;
    for (int trial = 0; trial < kTrials; ++trial) {
      const Interval interval =
          *MedianRatioInterval(Draw(more, random), Draw(few, random), 1);
      held += interval.low <= 1 && 1 <= interval.high;
    }
    EXPECT_GE(held, 0.89 * kTrials) << few << " and " << more;
  }
}

TEST(BootstrapTest, RatioOfTwoMediansIsInsideItsInterval) {
  const Interval interval =
      *MedianRatioInterval({180, 200, 220}, {90, 100, 110}, 1);
  EXPECT_LT(interval.low, 180.0 / 110);
  EXPECT_GT(interval.high, 220.0 / 90);
  EXPECT_NEAR(interval.low * interval.high, 4, 0.2);  // geometric mean 2
  EXPECT_FALSE(MedianRatioInterval({1}, {1, 2}, 1).has_value());
  EXPECT_FALSE(MedianRatioInterval({1, 2}, {1}, 1).has_value());
}

TEST(BootstrapTest, GroupsWeighTheSameWhateverTheirSize) {
  const RatioEstimate estimate =
      EstimateRatio({{2, 2, 2, 2, 2, 2}, {0.5, 0.5}}, 1);
  EXPECT_NEAR(estimate.ratio, 1, 1e-12);
  EXPECT_NEAR(estimate.interval->low, 1, 1e-12);
}

}  // namespace
}  // namespace hvdlite::support
