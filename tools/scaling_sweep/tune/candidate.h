// Candidates that `tune` tries, and how it chooses them.
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
  // The program without the launcher, in one process, as LibTorch's users start
  // it. Then all options are 0, and the threads of the spec are ignored.
  bool alone = false;
  // The launcher's default that is removed for this candidate: its name, and
  // how to remove it.
  std::string less = {};
  Ablation ablation = {};

  bool operator==(const Candidate&) const = default;
};

// Returns "blas=Haswell, world=2 ranks", "hvdliterun's defaults" or "LibTorch's
// defaults"; ", without hvdliterun's malloc" may follow.
std::string NameOf(const Dimensions& dimensions, const Candidate& candidate);

// Returns the candidate as a point of a sweep; its setting is the candidate's
// name. If several dimensions set world, mapping or threads, the last counts.
absl::StatusOr<Configuration> ConfigurationOf(const Spec& spec,
                                              const Dimensions& dimensions,
                                              const Candidate& candidate);

// Returns the program in one process with hvdliterun's defaults.
Candidate LaunchersDefaults(const Dimensions& dimensions);
// Returns the program as LibTorch's users start it.
Candidate LibTorchsDefaults(const Dimensions& dimensions);

// Returns each world, with the defaults of all other dimensions.
std::vector<Candidate> WorldCandidates(const Dimensions& dimensions);

// The start of the search for settings.
struct SearchBase {
  Candidate world;  // the fastest
  int ranks = 1;
};

// Returns `count` different candidates: the base's world (unless that is the
// defaults), each option alone in it, each preset, then random combinations
// (`seed`). With one rank, options for communication are left out.
std::vector<Candidate> SettingCandidates(const Dimensions& dimensions,
                                         const SearchBase& base, size_t count,
                                         uint64_t seed);

// Combines, for each dimension, the option that is best alone in the base's
// world, if it is faster than the base. nullopt if fewer than two dimensions
// have one. `speeds` belong to `candidates`; nullopt: failed or not run.
std::optional<Candidate> CombineBest(
    const Dimensions& dimensions, const SearchBase& base,
    const std::vector<Candidate>& candidates,
    const std::vector<std::optional<double>>& speeds);

// Returns the candidate with the default of one dimension.
Candidate Without(const Candidate& candidate, size_t dimension);

}  // namespace hvdlite::scaling_sweep
