// Confidence intervals by resampling (Efron and Tibshirani, "An Introduction to
// the Bootstrap", 1993).
#pragma once

#include <cstdint>
#include <optional>
#include <vector>

namespace hvdlite::scaling_sweep {

inline constexpr int kResamples = 10000;

struct Interval {
  double low = 0;
  double high = 0;
};

// 95 % percentile interval of the median; nullopt for fewer than two samples.
// Of few samples, it is no wider than they are apart.
std::optional<Interval> MedianInterval(const std::vector<double>& samples,
                                       uint64_t seed);

// What 95 % of resampled ratios are between, and the ratio itself.
struct RatioEstimate {
  double ratio = 1;
  std::optional<Interval> interval;  // nullopt: no group has two ratios
};

// Geometric mean of ratios, in `groups` (one per configuration) that weigh the
// same and are resampled apart. The interval is the percentile interval of the
// logarithms, widened around the ratio as Student's t widens a normal
// distribution: of few ratios it would be too narrow (Hesterberg, "What
// Teachers Should Know About the Bootstrap", 2015, section 3). A group of one
// ratio among larger ones counts as exact: leave it out. All ratios are above
// 0, and no group is empty (std::invalid_argument).
RatioEstimate EstimateRatio(const std::vector<std::vector<double>>& groups,
                            uint64_t seed);

}  // namespace hvdlite::scaling_sweep
