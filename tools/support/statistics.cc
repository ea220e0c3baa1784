#include "tools/support/statistics.h"

#include <algorithm>
#include <cmath>
#include <iterator>
#include <stdexcept>
#include <utility>

namespace hvdlite::base {

double Quantile(std::vector<double> samples, double p) {
  if (samples.empty()) throw std::invalid_argument("no samples");
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

double StudentT975(int64_t degrees) {
  // Beyond the table: the expansion in 1 / degrees (Abramowitz and Stegun,
  // "Handbook of Mathematical Functions", 26.7.5).
  constexpr double kTable[] = {12.706, 4.303, 3.182, 2.776, 2.571,
                               2.447,  2.365, 2.306, 2.262, 2.228};
  constexpr double kNormal = 1.959964;
  if (degrees <= static_cast<int64_t>(std::size(kTable))) {
    return kTable[degrees - 1];
  }
  const double n = static_cast<double>(degrees);
  const double x = kNormal;
  return x + (std::pow(x, 3) + x) / (4 * n) +
         (5 * std::pow(x, 5) + 16 * std::pow(x, 3) + 3 * x) / (96 * n * n) +
         (3 * std::pow(x, 7) + 19 * std::pow(x, 5) + 17 * std::pow(x, 3) -
          15 * x) /
             (384 * n * n * n);
}

}  // namespace hvdlite::base
