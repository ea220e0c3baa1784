#include "tools/support/bootstrap.h"

#include <gtest/gtest.h>

#include <cmath>
#include <random>
#include <vector>

namespace hvdlite::scaling_sweep {
namespace {

TEST(BootstrapTest, IsTheSameForTheSameSeed) {
  const std::vector<double> samples = {1, 2, 4, 8, 16};
  EXPECT_EQ(MedianInterval(samples, 3)->low, MedianInterval(samples, 3)->low);
  EXPECT_EQ(EstimateRatio({samples}, 3).interval->high,
            EstimateRatio({samples}, 3).interval->high);
  EXPECT_FALSE(MedianInterval({1}, 3).has_value());
}

// How often intervals hold the truth: a plain percentile interval of five
// pairs holds it in about 84 % of cases.
TEST(BootstrapTest, IntervalsOfFewPairsHoldTheTruthAsOftenAsTheySay) {
  std::mt19937_64 random(7);
  constexpr int kTrials = 400;
  int held = 0;
  for (int trial = 0; trial < kTrials; ++trial) {
    std::vector<double> ratios(5);
    for (double& ratio : ratios) {
      double sum = 0;  // of twelve uniform ones: nearly normal
      for (int i = 0; i < 12; ++i) {
        sum += static_cast<double>(random() >> 11) / 9007199254740992.0;
      }
      ratio = std::exp(0.05 * (sum - 6));
    }
    const Interval interval = *EstimateRatio({ratios}, 1).interval;
    held += interval.low <= 1 && 1 <= interval.high;
  }
  EXPECT_GE(held, 0.92 * kTrials);
  EXPECT_LE(held, 0.985 * kTrials);
}

TEST(BootstrapTest, ConfigurationsWeighTheSameWhateverTheirNumberOfPairs) {
  const RatioEstimate estimate =
      EstimateRatio({{2, 2, 2, 2, 2, 2}, {0.5, 0.5}}, 1);
  EXPECT_NEAR(estimate.ratio, 1, 1e-12);
  EXPECT_NEAR(estimate.interval->low, 1, 1e-12);
}

}  // namespace
}  // namespace hvdlite::scaling_sweep
