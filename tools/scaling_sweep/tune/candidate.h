// What `tune` tries, and how it chooses.
#pragma once

#include <cstddef>
#include <optional>
#include <string>
#include <vector>

#include "absl/status/statusor.h"
#include "tools/scaling_sweep/run/configuration.h"
#include "tools/scaling_sweep/run/launch_plan.h"
#include "tools/scaling_sweep/run/sweep.pb.h"
#include "tools/scaling_sweep/tune/tuning_space.h"

namespace hvdlite::scaling_sweep {

// One option of each dimension, by index; 0 is the default.
struct Candidate {
  std::vector<size_t> options;
  // The program as LibTorch's users start it: one process, without launcher.
  // All options are 0 then, and the SPEC's threads do not count.
  bool alone = false;
  // What the launcher does by itself, but not for this one: its name, and how
  // that is done.
  std::string less = {};
  Ablation ablation = {};

  bool operator==(const Candidate&) const = default;
};

// "blas=Haswell, world=2 ranks"; "hvdliterun's defaults" and "LibTorch's
// defaults" for those; ", less hvdliterun's malloc" after it.
std::string NameOf(const Dimensions& dimensions, const Candidate& candidate);

// As a point of a sweep, whose setting is the candidate's name. Of worlds,
// mappings and threads the last dimension's that gives one counts.
absl::StatusOr<Configuration> ConfigurationOf(const Spec& spec,
                                              const Dimensions& dimensions,
                                              const Candidate& candidate);

// What runs before all else: LibTorch's and hvdliterun's defaults, and each
// world alone.
std::vector<Candidate> WorldCandidates(const Dimensions& dimensions);

// The fastest of WorldCandidates, of those with the launcher; hvdliterun's
// defaults where none is faster. `speeds` belong to `candidates`; nullopt: it
// failed.
Candidate FastestWorld(const Dimensions& dimensions,
                       const std::vector<Candidate>& candidates,
                       const std::vector<std::optional<double>>& speeds);

// Where the search for settings begins.
struct SearchBase {
  Candidate world;  // FastestWorld
  int ranks = 1;
};

// What the first round runs: WorldCandidates; each preset; each option alone in
// the base's world; then combinations there, drawn from `seed`. With one rank,
// without what is between ranks. At most `count`, but at least the worlds and
// the presets; each once.
std::vector<Candidate> StartCandidates(const Dimensions& dimensions,
                                       const SearchBase& base, size_t count,
                                       uint64_t seed);

// Of each dimension the option that is best alone in the base's world, where it
// beats that; nullopt if fewer than two dimensions have one. `speeds` as above.
std::optional<Candidate> CombineBest(
    const Dimensions& dimensions, const SearchBase& base,
    const std::vector<Candidate>& candidates,
    const std::vector<std::optional<double>>& speeds);

// The candidate with the default of one dimension.
Candidate Without(const Candidate& candidate, size_t dimension);

// Successive halving (Jamieson and Talwalkar, "Non-stochastic Best Arm
// Identification and Hyperparameter Optimization", 2016): many candidates on a
// small budget, then half of them on twice the budget, until one is left.

// How often each candidate that is left has been run after round `round`, from
// 0: first, 2 first, 4 first, ...
int RepeatsAfterRound(int first_repeats, int round);

// Indices of the better half (rounded up) of those that did not fail, the
// fastest first. `speeds`: items/s; nullopt: it failed. Of equal ones the
// earlier is better.
std::vector<size_t> BetterHalf(
    const std::vector<std::optional<double>>& speeds);

}  // namespace hvdlite::scaling_sweep
