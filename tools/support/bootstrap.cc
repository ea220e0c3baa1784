#include "tools/support/bootstrap.h"

#include <algorithm>
#include <cmath>
#include <numeric>
#include <random>
#include <stdexcept>

#include "tools/support/statistics.h"

namespace hvdlite::scaling_sweep {
namespace {

double Mean(const std::vector<double>& values) {
  return std::accumulate(values.begin(), values.end(), 0.0) /
         static_cast<double>(values.size());
}

// As many of `values` as there are, drawn with replacement.
std::vector<double> Resample(const std::vector<double>& values,
                             std::mt19937_64& random) {
  std::vector<double> drawn(values.size());
  for (double& value : drawn) value = values[random() % values.size()];
  return drawn;
}

Interval Middle95(const std::vector<double>& values) {
  return {.low = base::Quantile(values, 0.025),
          .high = base::Quantile(values, 0.975)};
}

// By how much a percentile interval of so few values is too narrow: resamples
// scatter by sqrt((n - 1) / n) less than the values do, and that scatter is
// itself an estimate, for which Student's t makes up.
double Widening(const std::vector<std::vector<double>>& groups) {
  constexpr double kNormal975 = 1.959964;
  int64_t degrees = 0;
  size_t smallest = 0;  // of those that scatter
  for (const auto& group : groups) {
    degrees += static_cast<int64_t>(group.size()) - 1;
    if (group.size() < 2) continue;
    smallest = smallest == 0 ? group.size() : std::min(smallest, group.size());
  }
  const auto n = static_cast<double>(smallest);
  return std::sqrt(n / (n - 1)) * base::StudentT975(degrees) / kNormal975;
}

}  // namespace

std::optional<Interval> MedianInterval(const std::vector<double>& samples,
                                       uint64_t seed) {
  if (samples.size() < 2) return std::nullopt;
  std::mt19937_64 random(seed);
  std::vector<double> medians(kResamples);
  for (double& median : medians) {
    median = base::Quantile(Resample(samples, random), 0.5);
  }
  return Middle95(medians);
}

RatioEstimate EstimateRatio(const std::vector<std::vector<double>>& groups,
                            uint64_t seed) {
  if (groups.empty()) throw std::invalid_argument("no ratios");
  std::vector<std::vector<double>> logs;
  bool spread = false;
  for (const auto& group : groups) {
    if (group.empty()) throw std::invalid_argument("no ratios");
    auto& group_logs = logs.emplace_back();
    for (const double ratio : group) {
      if (!(ratio > 0)) throw std::invalid_argument("a ratio is not above 0");
      group_logs.push_back(std::log(ratio));
    }
    spread |= group.size() > 1;
  }
  const auto mean_of_groups = [&logs](auto&& mean) {
    double sum = 0;
    for (const auto& group : logs) sum += mean(group);
    return sum / static_cast<double>(logs.size());
  };
  const double log_ratio = mean_of_groups(Mean);
  RatioEstimate estimate;
  estimate.ratio = std::exp(log_ratio);
  if (!spread) return estimate;
  std::mt19937_64 random(seed);
  std::vector<double> resampled(kResamples);
  for (double& value : resampled) {
    value = mean_of_groups(
        [&](const auto& group) { return Mean(Resample(group, random)); });
  }
  const Interval middle = Middle95(resampled);
  const double widening = Widening(groups);
  estimate.interval = {
      .low = std::exp(log_ratio + widening * (middle.low - log_ratio)),
      .high = std::exp(log_ratio + widening * (middle.high - log_ratio))};
  return estimate;
}

}  // namespace hvdlite::scaling_sweep
