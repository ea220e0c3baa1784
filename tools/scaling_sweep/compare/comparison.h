// Compares two sweeps: was the second one faster?
#pragma once

#include <optional>
#include <string>
#include <vector>

#include "absl/status/statusor.h"
#include "support/statistics.h"
#include "tools/scaling_sweep/run/results.h"

namespace hvdlite::scaling_sweep {

enum class Significance { kFaster, kSlower, kNoDifference };

// Returns "faster", "slower" or "no significant difference".
std::string SignificanceText(Significance significance);

// A ratio is faster if its whole interval is above 1, and slower if it is below
// 1. Without an interval nothing is significant.
Significance Judge(const support::RatioEstimate& estimate);

// Whether the whole interval is below `threshold`, such as 0.95.
bool LiesBelow(const support::RatioEstimate& estimate, double threshold);

struct ComparedConfiguration {
  std::string name;  // for people
  int pairs = 0;     // repeats that succeeded on both sides
  bool oversubscribed = false;
  support::RatioEstimate ratio;  // items/s of the second / first
};

struct Comparison {
  std::vector<ComparedConfiguration> configurations;
  // The ratio of all configurations with two pairs or more, because a single
  // pair would count as exact. If there are none: of all configurations,
  // without an interval.
  support::RatioEstimate overall;
  int overall_pairs = 0;
  // Names of configurations that succeeded in the first, but not in the second.
  std::vector<std::string> lost;
  // How the specs differ; what was left out, and why.
  std::vector<std::string> notes;
};

// One side of a comparison: all results, or those of one setting. With a
// setting, the settings of the two sides need not be equal. If only one side
// names a setting, the other side uses the same one or, if it lacks it, its
// only one.
struct Side {
  Results results;
  std::optional<std::string> setting;
};

// Pairs the runs by configuration and repeat. InvalidArgument if there are no
// pairs (unless a configuration of both no longer succeeds), if one side has
// several settings, but not the other's, if two configurations of one side have
// the same name, or if the specs count different items.
absl::StatusOr<Comparison> Compare(const Side& a, const Side& b, uint64_t seed);

// Parses "-5%" as 0.95, the smallest ratio that is allowed. InvalidArgument
// unless it is a percentage from -100 to 0.
absl::StatusOr<double> ParseThreshold(const std::string& text);

// Returns the table and the verdicts for people. With a threshold, it marks
// what fails.
std::string ComparisonText(const Comparison& comparison,
                           std::optional<double> threshold);

// Whether a configuration no longer succeeds, or one configuration or all
// together are below `threshold`.
bool Fails(const Comparison& comparison, double threshold);

}  // namespace hvdlite::scaling_sweep
