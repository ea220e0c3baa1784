#include "tools/hvdlite_bench/results.h"

#include <algorithm>
#include <cmath>
#include <limits>
#include <numeric>

namespace hvdlite::tools {
namespace {

// Neighbours exchange a cache line in some 120 ns, distant cores in some 480.
constexpr double kFarNs = 250;

}  // namespace

Distance DistanceOf(double before_ns, double after_ns) {
  if (std::isnan(before_ns) || std::isnan(after_ns)) return Distance::kUnknown;
  if ((before_ns < kFarNs) != (after_ns < kFarNs)) return Distance::kMoved;
  return before_ns < kFarNs ? Distance::kNear : Distance::kFar;
}

const char* NameOf(Distance distance) {
  switch (distance) {
    case Distance::kNear:
      return "near";
    case Distance::kFar:
      return "far";
    case Distance::kMoved:
      return "moved";
    case Distance::kUnknown:
      break;
  }
  return "unknown";
}

int64_t Case::bytes() const {
  return std::accumulate(elements.begin(), elements.end(), int64_t{0}) *
         static_cast<int64_t>(sizeof(float));
}

int64_t Results::wrong() const {
  int64_t wrong = 0;
  for (const Case& a_case : cases) {
    for (const Contender& contender : a_case.contenders) {
      for (const Sample& sample : contender.samples) wrong += sample.wrong;
    }
  }
  return wrong;
}

std::vector<double> SamplesAt(const Case& a_case, const Contender& contender,
                              Distance distance) {
  std::vector<double> samples;
  for (size_t round = 0; round < contender.samples.size(); ++round) {
    if (a_case.distance(round) == distance) {
      samples.push_back(contender.samples[round].value);
    }
  }
  return samples;
}

std::vector<double> RatiosToBestMpi(const Case& a_case,
                                    const Contender& contender,
                                    Distance distance) {
  std::vector<double> ratios;
  for (size_t round = 0; round < contender.samples.size(); ++round) {
    if (a_case.distance(round) != distance) continue;
    double best = std::numeric_limits<double>::infinity();
    for (const Contender& other : a_case.contenders) {
      if (other.role != Role::kMpi || other.samples.empty()) continue;
      best = std::min(best, other.samples[round].value);
    }
    if (std::isinf(best)) return {};
    ratios.push_back(contender.samples[round].value / best);
  }
  return ratios;
}

}  // namespace hvdlite::tools
