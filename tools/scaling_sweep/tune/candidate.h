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

// The program in one process, bound and set up as hvdliterun does by itself.
Candidate LaunchersDefaults(const Dimensions& dimensions);
// The program as LibTorch's users start it.
Candidate LibTorchsDefaults(const Dimensions& dimensions);

// Each world, with the defaults of all else.
std::vector<Candidate> WorldCandidates(const Dimensions& dimensions);

// Where the search for settings begins.
struct SearchBase {
  Candidate world;  // the fastest
  int ranks = 1;
};

// The base's world, unless that is the defaults; each option alone in it; each
// preset; then combinations, drawn from `seed`. With one rank, without what is
// between ranks. The first `count` of these, each once.
std::vector<Candidate> SettingCandidates(const Dimensions& dimensions,
                                         const SearchBase& base, size_t count,
                                         uint64_t seed);

// Of each dimension the option that is best alone in the base's world, where it
// beats that; nullopt if fewer than two dimensions have one. `speeds` belong to
// `candidates`; nullopt: it failed, or has not been run.
std::optional<Candidate> CombineBest(
    const Dimensions& dimensions, const SearchBase& base,
    const std::vector<Candidate>& candidates,
    const std::vector<std::optional<double>>& speeds);

// The candidate with the default of one dimension.
Candidate Without(const Candidate& candidate, size_t dimension);

}  // namespace hvdlite::scaling_sweep
