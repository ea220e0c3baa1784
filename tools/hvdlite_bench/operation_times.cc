#include "tools/hvdlite_bench/operation_times.h"

#include <algorithm>
#include <utility>

#include "tools/support/statistics.h"

namespace hvdlite::tools {

std::vector<double> OperationTimes(const std::vector<double>& start,
                                   const std::vector<double>& end, int ranks,
                                   bool one_clock) {
  const size_t operations = start.size() / ranks;
  std::vector<double> times;
  for (size_t i = 0; i < operations; ++i) {
    double last_start = start[i];
    double last_end = end[i];
    double longest = 0;
    for (size_t at = i; at < start.size(); at += operations) {
      last_start = std::max(last_start, start[at]);
      last_end = std::max(last_end, end[at]);
      longest = std::max(longest, end[at] - start[at]);
    }
    times.push_back(one_clock ? last_end - last_start : longest);
  }
  return times;
}

Case Percentile99(const Case& median) {
  Case tail = median;
  tail.name += "_p99";
  tail.description += ", 99th percentile";
  for (Contender& contender : tail.contenders) {
    for (Sample& sample : contender.samples) {
      sample.value = base::Quantile(std::move(sample.raw), 0.99);
      sample.raw.clear();
    }
  }
  return tail;
}

}  // namespace hvdlite::tools
