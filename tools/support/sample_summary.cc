#include "tools/support/sample_summary.h"

#include <algorithm>
#include <cmath>
#include <limits>
#include <numeric>

#include "tools/support/statistics.h"

namespace hvdlite::tools {

Summary Summarise(const std::vector<double>& samples) {
  Summary summary;
  summary.median = base::Median(samples);
  const auto [min, max] = std::minmax_element(samples.begin(), samples.end());
  summary.min = *min;
  summary.max = *max;
  summary.samples = static_cast<int64_t>(samples.size());
  const double n = static_cast<double>(samples.size());
  summary.mean = std::accumulate(samples.begin(), samples.end(), 0.0) / n;
  double half = std::numeric_limits<double>::infinity();
  if (samples.size() > 1) {
    double squares = 0;
    for (const double sample : samples) {
      squares += (sample - summary.mean) * (sample - summary.mean);
    }
    half = base::StudentT975(summary.samples - 1) *
           std::sqrt(squares / (n - 1) / n);
  }
  summary.low = summary.mean - half;
  summary.high = summary.mean + half;
  return summary;
}

double AllreduceBusFactor(int ranks) {
  return 2.0 * (ranks - 1) / static_cast<double>(ranks);
}

}  // namespace hvdlite::tools
