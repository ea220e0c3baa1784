#include "trainers/data/sets/pattern_digits.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <array>

namespace hvdlite::trainers {
namespace {

using Centroids = std::array<std::array<double, kDigitBytes>, kDigitClasses>;

// The mean image of each digit; `digits` has equally many of all.
Centroids MeanImages(const DigitSet& digits) {
  Centroids means = {};
  for (int64_t i = 0; i < digits.size(); ++i) {
    for (int64_t pixel = 0; pixel < kDigitBytes; ++pixel) {
      means[digits.labels[i]][pixel] +=
          static_cast<double>(digits.image(i)[pixel]) * kDigitClasses /
          static_cast<double>(digits.size());
    }
  }
  return means;
}

double SquaredDistance(const std::array<double, kDigitBytes>& mean,
                       const uint8_t* image) {
  double sum = 0;
  for (int64_t pixel = 0; pixel < kDigitBytes; ++pixel) {
    sum += (mean[pixel] - image[pixel]) * (mean[pixel] - image[pixel]);
  }
  return sum;
}

int NearestCentroid(const Centroids& means, const uint8_t* image) {
  return static_cast<int>(std::min_element(means.begin(), means.end(),
                                           [&](const auto& a, const auto& b) {
                                             return SquaredDistance(a, image) <
                                                    SquaredDistance(b, image);
                                           }) -
                          means.begin());
}

TEST(PatternDigitsTest, NearestCentroidsTellMostOfThemApart) {
  const Centroids means = MeanImages(MakePatternDigits(1000, /*seed=*/1));
  const DigitSet test = MakePatternDigits(200, /*seed=*/2);
  int correct = 0;
  for (int64_t i = 0; i < test.size(); ++i) {
    correct += NearestCentroid(means, test.image(i)) == test.labels[i] ? 1 : 0;
  }
  EXPECT_GT(correct, 120);
}

TEST(PatternDigitsTest, ClassesAreEquallyFrequentAndSeedsDiffer) {
  const DigitSet digits = MakePatternDigits(100, /*seed=*/1);
  ASSERT_EQ(digits.pixels.size(), 100U * kDigitBytes);
  for (int label = 0; label < kDigitClasses; ++label) {
    EXPECT_EQ(std::count(digits.labels.begin(), digits.labels.end(), label),
              10);
  }
  EXPECT_EQ(digits.pixels, MakePatternDigits(100, /*seed=*/1).pixels);
  EXPECT_NE(digits.pixels, MakePatternDigits(100, /*seed=*/2).pixels);
}

}  // namespace
}  // namespace hvdlite::trainers
