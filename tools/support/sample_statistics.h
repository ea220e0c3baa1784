// Statistics of observations.
#pragma once

#include <cstdint>
#include <vector>

namespace hvdlite::trainers {

struct SampleStatistics {
  double avg = 0;
  int64_t count = 0;
  double max = 0;
  double min = 0;
  double sd = 0;  // of the population: the squares are divided by count

  double range() const { return max - min; }
};

// The functions below throw std::invalid_argument where there are too few
// observations: at least one is needed unless they say otherwise. None may be
// NaN. Results are in the observations' unit.

SampleStatistics StatisticsOf(const std::vector<double>& observations);

// The squares are divided by n - 1, as pandas.Series.std does. Of at least two.
double SampleStandardDeviation(const std::vector<double>& observations);

// The population's standard deviation divided by the square root of n.
double StandardError(const std::vector<double>& observations);

// The median of the distances from the median.
double MedianAbsoluteDeviation(const std::vector<double>& observations);

// 1.4826 times the median absolute deviation: an estimate of the standard
// deviation that outliers do not move (Rousseeuw and Croux, "Alternatives to
// the Median Absolute Deviation", JASA 1993).
double Jitter(const std::vector<double>& observations);

}  // namespace hvdlite::trainers
