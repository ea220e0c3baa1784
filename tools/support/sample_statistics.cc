#include "tools/support/sample_statistics.h"

#include <algorithm>
#include <cmath>
#include <cstddef>
#include <numeric>
#include <stdexcept>
#include <string>
#include <utility>

#include "tools/support/statistics.h"

namespace hvdlite::trainers {
namespace {

void RequireAtLeast(size_t needed, const std::vector<double>& observations) {
  if (observations.size() >= needed) return;
  throw std::invalid_argument(std::to_string(observations.size()) +
                              " observations; expected at least " +
                              std::to_string(needed));
}

double Mean(const std::vector<double>& observations) {
  return std::accumulate(observations.begin(), observations.end(), 0.0) /
         static_cast<double>(observations.size());
}

// The sum of the squared distances from the mean.
double SumOfSquares(const std::vector<double>& observations) {
  const double mean = Mean(observations);
  double sum = 0;
  for (const double value : observations)
    sum += (value - mean) * (value - mean);
  return sum;
}

}  // namespace

SampleStatistics StatisticsOf(const std::vector<double>& observations) {
  RequireAtLeast(1, observations);
  const auto [min, max] =
      std::minmax_element(observations.begin(), observations.end());
  return {
      .avg = Mean(observations),
      .count = static_cast<int64_t>(observations.size()),
      .max = *max,
      .min = *min,
      .sd = std::sqrt(SumOfSquares(observations) /
                      static_cast<double>(observations.size())),
  };
}

double SampleStandardDeviation(const std::vector<double>& observations) {
  RequireAtLeast(2, observations);
  return std::sqrt(SumOfSquares(observations) /
                   static_cast<double>(observations.size() - 1));
}

double StandardError(const std::vector<double>& observations) {
  return StatisticsOf(observations).sd /
         std::sqrt(static_cast<double>(observations.size()));
}

double MedianAbsoluteDeviation(const std::vector<double>& observations) {
  const double median = base::Median(observations);
  std::vector<double> distances;
  for (const double value : observations) {
    distances.push_back(std::abs(value - median));
  }
  return base::Median(std::move(distances));
}

double Jitter(const std::vector<double>& observations) {
  return 1.4826 * MedianAbsoluteDeviation(observations);
}

}  // namespace hvdlite::trainers
