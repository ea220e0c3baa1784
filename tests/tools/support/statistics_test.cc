#include "tools/support/statistics.h"

#include <gtest/gtest.h>

#include <stdexcept>

namespace hvdlite::base {
namespace {

TEST(QuantileTest, LiesBetweenNeighbours) {
  EXPECT_DOUBLE_EQ(Quantile({4, 1, 3, 10}, 0.5), 3.5);
  EXPECT_DOUBLE_EQ(Quantile({4, 1, 3, 10}, 0), 1);
  EXPECT_DOUBLE_EQ(Quantile({4, 1, 3, 10}, 1), 10);
  EXPECT_DOUBLE_EQ(Quantile({0, 100}, 0.99), 99);
  EXPECT_DOUBLE_EQ(Quantile({7}, 0.99), 7);
}

TEST(QuantileTest, AgreesWithNumpysPercentile) {
  EXPECT_DOUBLE_EQ(Quantile({40, 15, 50, 20, 35}, 0.4), 29);
  EXPECT_DOUBLE_EQ(Quantile({40, 15, 50, 20, 35}, 0.8), 42);
  EXPECT_DOUBLE_EQ(Quantile({40, 15, 50, 20, 35}, 0.9), 46);
}

TEST(MedianTest, IsTheMiddleOrTheMeanOfTheTwoInTheMiddle) {
  EXPECT_EQ(Median({3, 1, 2}), 2);
  EXPECT_EQ(Median({4, 1, 3, 2}), 2.5);
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

}  // namespace
}  // namespace hvdlite::base
