#include "support/statistics.h"

#include <algorithm>
#include <cmath>
#include <cstddef>
#include <iterator>
#include <limits>
#include <numeric>
#include <random>
#include <stdexcept>
#include <utility>

namespace hvdlite::support {
namespace {

constexpr double kNormal975 = 1.959964;  // StudentT975 for infinity

void RequireSome(const std::vector<double>& samples) {
  if (samples.empty()) throw std::invalid_argument("there are no samples");
}

// Draws values.size() values with replacement.
std::vector<double> Resample(const std::vector<double>& values,
                             std::mt19937_64& random) {
  std::vector<double> drawn(values.size());
  for (double& value : drawn) value = values[random() % values.size()];
  return drawn;
}

Interval Middle95(const std::vector<double>& values) {
  return {.low = Quantile(values, 0.025), .high = Quantile(values, 0.975)};
}

// Interval of exp(logs), widened around the estimate.
Interval WidenedRatio(const std::vector<double>& logs, double log_ratio,
                      double widening) {
  const Interval middle = Middle95(logs);
  return {.low = std::exp(log_ratio + widening * (middle.low - log_ratio)),
          .high = std::exp(log_ratio + widening * (middle.high - log_ratio))};
}

// Factor by which a percentile interval of so few values is too narrow:
// resamples scatter by sqrt((n - 1) / n) less than the values, and Student's t
// corrects for the estimated scatter.
double Widening(const std::vector<std::vector<double>>& groups) {
  int64_t degrees = 0;
  size_t smallest = 0;  // among groups with two or more values
  for (const auto& group : groups) {
    degrees += static_cast<int64_t>(group.size()) - 1;
    if (group.size() < 2) continue;
    smallest = smallest == 0 ? group.size() : std::min(smallest, group.size());
  }
  const auto n = static_cast<double>(smallest);
  return std::sqrt(n / (n - 1)) * StudentT975(degrees) / kNormal975;
}

}  // namespace

double Quantile(std::vector<double> samples, double p) {
  RequireSome(samples);
  std::sort(samples.begin(), samples.end());
  const double at = p * static_cast<double>(samples.size() - 1);
  const size_t below = static_cast<size_t>(at);
  const size_t above = std::min(below + 1, samples.size() - 1);
  return samples[below] +
         (at - static_cast<double>(below)) * (samples[above] - samples[below]);
}

double Median(std::vector<double> samples) {
  return Quantile(std::move(samples), 0.5);
}

double Mean(const std::vector<double>& samples) {
  RequireSome(samples);
  return std::accumulate(samples.begin(), samples.end(), 0.0) /
         static_cast<double>(samples.size());
}

Summary Summarise(const std::vector<double>& samples) {
  RequireSome(samples);
  const auto [min, max] = std::minmax_element(samples.begin(), samples.end());
  const double n = static_cast<double>(samples.size());
  const double mean = Mean(samples);
  double squares = 0;  // sum of squared distances from the mean
  for (const double value : samples) squares += (value - mean) * (value - mean);
  Summary summary = {.samples = static_cast<int64_t>(samples.size()),
                     .mean = mean,
                     .median = Median(samples),
                     .min = *min,
                     .max = *max,
                     .sd = std::sqrt(squares / n)};
  const double half =
      samples.size() > 1
          ? StudentT975(summary.samples - 1) * std::sqrt(squares / (n - 1) / n)
          : std::numeric_limits<double>::infinity();
  summary.low = summary.mean - half;
  summary.high = summary.mean + half;
  return summary;
}

double StandardError(const std::vector<double>& samples) {
  return Summarise(samples).sd / std::sqrt(static_cast<double>(samples.size()));
}

double MedianAbsoluteDeviation(const std::vector<double>& samples) {
  const double median = Median(samples);
  std::vector<double> distances;
  for (const double value : samples) {
    distances.push_back(std::abs(value - median));
  }
  return Median(std::move(distances));
}

double Jitter(const std::vector<double>& samples) {
  return 1.4826 * MedianAbsoluteDeviation(samples);
}

double StudentT975(int64_t degrees) {
  // Beyond the table: expansion in 1 / degrees (Abramowitz and Stegun,
  // "Handbook of Mathematical Functions", 26.7.5).
  constexpr double kTable[] = {12.706, 4.303, 3.182, 2.776, 2.571,
                               2.447,  2.365, 2.306, 2.262, 2.228};
  if (degrees <= static_cast<int64_t>(std::size(kTable))) {
    return kTable[degrees - 1];
  }
  const double n = static_cast<double>(degrees);
  const double x = kNormal975;
  return x + (std::pow(x, 3) + x) / (4 * n) +
         (5 * std::pow(x, 5) + 16 * std::pow(x, 3) + 3 * x) / (96 * n * n) +
         (3 * std::pow(x, 7) + 19 * std::pow(x, 5) + 17 * std::pow(x, 3) -
          15 * x) /
             (384 * n * n * n);
}

std::optional<Interval> MedianInterval(const std::vector<double>& samples,
                                       uint64_t seed) {
  if (samples.size() < 2) return std::nullopt;
  std::mt19937_64 random(seed);
  std::vector<double> medians(kResamples);
  for (double& median : medians) {
    median = Quantile(Resample(samples, random), 0.5);
  }
  return Middle95(medians);
}

std::optional<Interval> MedianRatioInterval(const std::vector<double>& samples,
                                            const std::vector<double>& base,
                                            uint64_t seed) {
  if (samples.size() < 2 || base.size() < 2) return std::nullopt;
  std::mt19937_64 random(seed);
  std::vector<double> resampled(kResamples);
  for (double& value : resampled) {
    value = std::log(Median(Resample(samples, random)) /
                     Median(Resample(base, random)));
  }
  return WidenedRatio(resampled, std::log(Median(samples) / Median(base)),
                      Widening({samples, base}));
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
      if (!(ratio > 0)) throw std::invalid_argument("a ratio must be above 0");
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
  estimate.interval = WidenedRatio(resampled, log_ratio, Widening(groups));
  return estimate;
}

}  // namespace hvdlite::support
