#include "tools/support/sample_statistics.h"

#include <gtest/gtest.h>

#include <cmath>
#include <stdexcept>

namespace hvdlite::trainers {
namespace {

TEST(SampleStatisticsTest, StatisticsHaveThePopulationsStandardDeviation) {
  // Mean 5, squared distances 9 1 1 1 0 0 4 16: their mean is 4.
  const SampleStatistics statistics = StatisticsOf({2, 4, 4, 4, 5, 5, 7, 9});
  EXPECT_EQ(statistics.avg, 5);
  EXPECT_EQ(statistics.count, 8);
  EXPECT_EQ(statistics.max, 9);
  EXPECT_EQ(statistics.min, 2);
  EXPECT_EQ(statistics.sd, 2);
  EXPECT_EQ(statistics.range(), 7);
}

TEST(SampleStatisticsTest, StandardDeviationOfCloseLargeValuesIsExact) {
  EXPECT_EQ(StatisticsOf({1e9 + 1, 1e9 - 1}).sd, 1);
}

TEST(SampleStatisticsTest, SampleStandardDeviationDividesByOneLess) {
  EXPECT_DOUBLE_EQ(SampleStandardDeviation({2, 4, 4, 4, 5, 5, 7, 9}),
                   std::sqrt(32.0 / 7));
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

TEST(SampleStatisticsTest, TooFewObservationsAreRefused) {
  EXPECT_THROW(StatisticsOf({}), std::invalid_argument);
  EXPECT_THROW(SampleStandardDeviation({1}), std::invalid_argument);
  EXPECT_THROW(StandardError({}), std::invalid_argument);
  EXPECT_THROW(Jitter({}), std::invalid_argument);
}

}  // namespace
}  // namespace hvdlite::trainers
