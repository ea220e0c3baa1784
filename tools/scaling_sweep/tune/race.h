// Who stays in a race of candidates, by the rounds in which they ran together.
#pragma once

#include <cstdint>
#include <map>
#include <optional>
#include <string>
#include <vector>

#include "tools/scaling_sweep/run/results.h"

namespace hvdlite::scaling_sweep {

// What a candidate did in a round.
struct Trial {
  std::optional<double> items_per_second;  // nullopt: it failed
  bool disturbed = false;                  // by other programs, at last, too
  std::string failure = {};
};
using Rounds = std::map<int, Trial>;  // by the round's number

// Whether other programs were busy meanwhile; nullopt: nobody knows, as on
// other hosts.
std::optional<bool> WasDisturbed(const Sample& sample);

bool HasFailed(const Rounds& rounds);

// Items/s of one candidate by another's, of rounds in which both succeeded.
struct PairedRatios {
  std::vector<double> ratios = {};
  int pairs = 0;      // also those that were set aside
  int disturbed = 0;  // of these, in which a run was
  // Disturbed ones count, as too few were not.
  bool rests_on_disturbed = false;
};

// Of the rounds from `first` on. Disturbed ones are set aside where at least
// three others are there.
PairedRatios RatiosOf(const Rounds& one, const Rounds& other, int first = 0);

// The geometric mean of the ratios; nullopt: there are none.
std::optional<double> MeanRatio(const PairedRatios& paired);

// Whether of three ratios or more the 95 % interval is below 1.
bool IsClearlySlower(const PairedRatios& paired);

// Successive halving (Jamieson and Talwalkar, "Non-stochastic Best Arm
// Identification and Hyperparameter Optimization", 2016): many candidates on a
// small budget, then half of them on more, until one is left. Each round has
// the defaults, too.

// That stage `stage`, from 0, adds.
int RoundsOfStage(int stage, int first_rounds);

// Of all stages, at most.
int64_t RunsOfRace(int64_t candidates, int first_rounds);

}  // namespace hvdlite::scaling_sweep
