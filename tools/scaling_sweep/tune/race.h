// Compares candidates by the rounds in which they ran together.
#pragma once

#include <cstdint>
#include <map>
#include <optional>
#include <string>
#include <vector>

#include "tools/scaling_sweep/run/results.h"

namespace hvdlite::scaling_sweep {

// The result of a candidate in a round.
struct Trial {
  std::optional<double> items_per_second;  // nullopt: it failed
  bool disturbed = false;  // by other programs, also in the last repetition
  std::string failure = {};
};
using Rounds = std::map<int, Trial>;  // by the round's number

// Whether other programs were busy during the run; nullopt: not known, for
// example on other hosts.
std::optional<bool> WasDisturbed(const Sample& sample);

bool HasFailed(const Rounds& rounds);

// Ratios of the items/s of two candidates, from rounds in which both succeeded.
struct PairedRatios {
  std::vector<double> ratios = {};
  int pairs = 0;      // including ignored ones
  int disturbed = 0;  // pairs with a disturbed run
  // Disturbed pairs count, because there are too few others.
  bool rests_on_disturbed = false;
};

// Returns the ratios of the rounds from `first` on. Ignores disturbed rounds if
// there are at least three others.
PairedRatios RatiosOf(const Rounds& one, const Rounds& other, int first = 0);

// Returns the geometric mean of the ratios; nullopt if there are none.
std::optional<double> MeanRatio(const PairedRatios& paired);

// Whether there are at least three ratios and their 95 % interval is below 1.
bool IsClearlySlower(const PairedRatios& paired);

// Successive halving (Jamieson and Talwalkar, "Non-stochastic Best Arm
// Identification and Hyperparameter Optimization", 2016): many candidates on a
// small budget, then half of them on more, until one is left. Each round also
// runs the defaults.

// Returns the number of rounds of a stage, counted from 0.
int RoundsOfStage(int stage, int first_rounds);

// Returns the maximum number of runs of all stages.
int64_t RunsOfRace(int64_t candidates, int first_rounds);

}  // namespace hvdlite::scaling_sweep
