// Statistics of samples. Samples must not be NaN. Unless stated otherwise,
// functions throw std::invalid_argument for an empty list.
#pragma once

#include <cstdint>
#include <optional>
#include <vector>

namespace hvdlite::support {

// The value below which a fraction `p` of the samples lies, 0 <= p <= 1. It is
// interpolated linearly like numpy.percentile: Quantile({1, 2, 3, 4}, 0.5) is
// 2.5.
double Quantile(std::vector<double> samples, double p);

// Quantile(samples, 0.5).
double Median(std::vector<double> samples);

double Mean(const std::vector<double>& samples);

struct Summary {
  int64_t samples = 0;
  double mean = 0;
  double median = 0;
  double min = 0;
  double max = 0;
  double sd = 0;  // of the population: divided by `samples`
  // 95 % confidence interval of the mean (Student's t); infinite for a single
  // sample.
  double low = 0;
  double high = 0;

  double range() const { return max - min; }
};

Summary Summarise(const std::vector<double>& samples);

// The population's standard deviation divided by the square root of n.
double StandardError(const std::vector<double>& samples);

// The median of the absolute deviations from the median.
double MedianAbsoluteDeviation(const std::vector<double>& samples);

// 1.4826 times the median absolute deviation: an estimate of the standard
// deviation that is robust to outliers (Rousseeuw and Croux, "Alternatives to
// the Median Absolute Deviation", JASA 1993).
double Jitter(const std::vector<double>& samples);

// 0.975 quantile of Student's t with `degrees` >= 1 degrees of freedom, within
// 0.1 %.
double StudentT975(int64_t degrees);

// The functions below resample (Efron and Tibshirani, "An Introduction to the
// Bootstrap", 1993).
inline constexpr int kResamples = 10000;

struct Interval {
  double low = 0;
  double high = 0;
};

// 95 % percentile interval of the median; nullopt for fewer than two samples.
// It is never wider than the range of the samples.
std::optional<Interval> MedianInterval(const std::vector<double>& samples,
                                       uint64_t seed);

// 95 % interval of Median(samples) / Median(base). Both are resampled
// independently, and the interval is widened like that of EstimateRatio().
// nullopt if either has fewer than two samples. All samples are above 0.
std::optional<Interval> MedianRatioInterval(const std::vector<double>& samples,
                                            const std::vector<double>& base,
                                            uint64_t seed);

// A ratio, and the interval that contains 95 % of the resampled ratios.
struct RatioEstimate {
  double ratio = 1;
  std::optional<Interval> interval;  // nullopt: no group has two ratios
};

// Geometric mean of ratios. `groups` (one per configuration) have equal weight
// and are resampled independently. The interval is the percentile interval of
// the logarithms, widened around the ratio as Student's t widens a normal
// distribution; without that it would be too narrow for few ratios (Hesterberg,
// "What Teachers Should Know About the Bootstrap", 2015, section 3). A group of
// one ratio among larger ones counts as exact: leave it out. Throws
// std::invalid_argument if a ratio is not above 0 or a group is empty.
RatioEstimate EstimateRatio(const std::vector<std::vector<double>>& groups,
                            uint64_t seed);

}  // namespace hvdlite::support
