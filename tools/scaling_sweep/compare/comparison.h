// Whether one sweep was faster than another.
#pragma once

#include <optional>
#include <string>
#include <vector>

#include "absl/status/statusor.h"
#include "support/statistics.h"
#include "tools/scaling_sweep/run/results.h"

namespace hvdlite::scaling_sweep {

enum class Significance { kFaster, kSlower, kNoDifference };

// "faster", "slower", "no significant difference".
std::string SignificanceText(Significance significance);

// Of a ratio: that the whole interval is above 1, below 1, or neither; without
// an interval nothing is significant.
Significance Judge(const support::RatioEstimate& estimate);

// Whether the whole interval lies below `threshold`, as 0.95.
bool LiesBelow(const support::RatioEstimate& estimate, double threshold);

struct ComparedConfiguration {
  std::string name;  // for people
  int pairs = 0;     // repeats that succeeded on both sides
  bool oversubscribed = false;
  support::RatioEstimate ratio;  // items/s of the second by the first
};

struct Comparison {
  std::vector<ComparedConfiguration> configurations;
  // Of all configurations with two pairs or more: a single pair would count as
  // exact. If there are none, of all, without an interval.
  support::RatioEstimate overall;
  int overall_pairs = 0;
  // Names of those that succeeded in the first, but never in the second.
  std::vector<std::string> lost;
  // How the SPECs differ; what was left out, and why.
  std::vector<std::string> notes;
};

// One side of a comparison: all results, or those of one setting, which then is
// no part of what has to be equal. If only one side has a setting, the other's
// is the same or, if it has no such, its only one.
struct Side {
  Results results;
  std::optional<std::string> setting;
};

// Pairs by configuration and repeat. InvalidArgument if there are no pairs
// (unless that is since a configuration of both is lost), if one side has
// several settings, but not the other's, if two configurations of one side
// have the same name, or if the SPECs count different items.
absl::StatusOr<Comparison> Compare(const Side& a, const Side& b, uint64_t seed);

// "-5%" is 0.95: what a ratio must not be below. InvalidArgument for what is no
// percentage from -100 to 0.
absl::StatusOr<double> ParseThreshold(const std::string& text);

// Table and verdicts for people. With a threshold also what fails by it.
std::string ComparisonText(const Comparison& comparison,
                           std::optional<double> threshold);

// Whether a configuration is lost or lies below `threshold`, or all together
// do.
bool Fails(const Comparison& comparison, double threshold);

}  // namespace hvdlite::scaling_sweep
