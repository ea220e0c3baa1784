#include "tools/scaling_sweep/tune/candidate.h"

#include <algorithm>
#include <random>
#include <utility>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "base/status_macros.h"

namespace hvdlite::scaling_sweep {
namespace {

// Returns the dimensions in which the candidate differs from the default.
std::vector<size_t> Changed(const Candidate& candidate) {
  std::vector<size_t> changed;
  for (size_t i = 0; i < candidate.options.size(); ++i) {
    if (candidate.options[i] != 0) changed.push_back(i);
  }
  return changed;
}

size_t OptionsOf(const Dimension& dimension) {
  return static_cast<size_t>(dimension.option_size());
}

const Setting& OptionOf(const Dimension& dimension, size_t option) {
  return dimension.option(static_cast<int>(option));
}

Candidate With(Candidate candidate, size_t dimension, size_t option) {
  candidate.options[dimension] = option;
  return candidate;
}

// Whether the search varies this dimension in the base's world.
bool Varies(const Dimension& dimension, const SearchBase& base) {
  return !IsPresets(dimension) && !IsWorlds(dimension) &&
         (base.ranks > 1 || !IsBetweenRanks(dimension));
}

Candidate RandomCandidate(const Dimensions& dimensions, const SearchBase& base,
                          std::mt19937_64& random) {
  Candidate candidate = base.world;
  for (size_t i = 0; i < dimensions.size(); ++i) {
    if (!Varies(dimensions[i], base)) continue;
    candidate.options[i] = random() % OptionsOf(dimensions[i]);
  }
  return candidate;
}

std::optional<double> SpeedOf(
    const Candidate& candidate, const std::vector<Candidate>& candidates,
    const std::vector<std::optional<double>>& speeds) {
  const auto found = std::find(candidates.begin(), candidates.end(), candidate);
  if (found == candidates.end()) return std::nullopt;
  return speeds[static_cast<size_t>(found - candidates.begin())];
}

// Appends `more`, or replaces fields that can have only one value.
void Merge(const Setting& more, Setting& all) {
  if (more.ranks_size() + more.world_size() > 0) {
    all.clear_ranks();
    all.clear_world();
  }
  if (more.mapping_size() > 0) all.clear_mapping();
  if (more.threads_size() > 0) all.clear_threads();
  all.MergeFrom(more);
}

}  // namespace

std::string NameOf(const Dimensions& dimensions, const Candidate& candidate) {
  if (candidate.alone) return "LibTorch's defaults";
  const std::vector<size_t> changed = Changed(candidate);
  std::string name =
      absl::StrJoin(changed, ", ", [&](std::string* out, size_t i) {
        absl::StrAppend(out, dimensions[i].name(), "=",
                        OptionOf(dimensions[i], candidate.options[i]).name());
      });
  if (changed.empty()) name = "hvdliterun's defaults";
  if (candidate.less.empty()) return name;
  return absl::StrCat(name, ", without hvdliterun's ", candidate.less);
}

absl::StatusOr<Configuration> ConfigurationOf(const Spec& spec,
                                              const Dimensions& dimensions,
                                              const Candidate& candidate) {
  Setting setting;
  for (size_t i = 0; i < dimensions.size(); ++i) {
    if (candidate.alone) break;
    Merge(OptionOf(dimensions[i], candidate.options[i]), setting);
  }
  setting.set_name(NameOf(dimensions, candidate));
  setting.set_alone(candidate.alone);
  Spec first = spec;  // with only the first element of each list
  first.clear_setting();
  if (candidate.alone) {
    setting.add_ranks(1);
    first.clear_threads();
  }
  HVDLITE_ASSIGN_OR_RETURN(const std::vector<Configuration> configurations,
                           ConfigurationsOf(first, setting));
  Configuration configuration = configurations.front();
  HVDLITE_RETURN_IF_ERROR(CheckHosts(spec, configuration));
  const Ablation& ablation = candidate.ablation;
  configuration.unset = ablation.unset;
  configuration.launcher_flags.insert(configuration.launcher_flags.end(),
                                      ablation.launcher_flags.begin(),
                                      ablation.launcher_flags.end());
  return configuration;
}

Candidate LaunchersDefaults(const Dimensions& dimensions) {
  return {.options = std::vector<size_t>(dimensions.size(), 0)};
}

Candidate LibTorchsDefaults(const Dimensions& dimensions) {
  Candidate candidate = LaunchersDefaults(dimensions);
  candidate.alone = true;
  return candidate;
}

std::vector<Candidate> WorldCandidates(const Dimensions& dimensions) {
  const Candidate defaults = LaunchersDefaults(dimensions);
  std::vector<Candidate> candidates;
  for (size_t i = 0; i < dimensions.size(); ++i) {
    if (!IsWorlds(dimensions[i])) continue;
    for (size_t option = 1; option < OptionsOf(dimensions[i]); ++option) {
      candidates.push_back(With(defaults, i, option));
    }
  }
  return candidates;
}

std::vector<Candidate> SettingCandidates(const Dimensions& dimensions,
                                         const SearchBase& base, size_t count,
                                         uint64_t seed) {
  const Candidate defaults = LaunchersDefaults(dimensions);
  std::vector<Candidate> candidates;
  if (base.world != defaults) candidates.push_back(base.world);
  constexpr size_t kMany = 1 << 16;
  size_t combinations = 1;
  size_t singles = 0;
  for (size_t i = 0; i < dimensions.size(); ++i) {
    if (!Varies(dimensions[i], base)) continue;
    const size_t options = std::min(OptionsOf(dimensions[i]), kMany);
    combinations = std::min(combinations * options, kMany);
    for (size_t option = 1; option < options; ++option, ++singles) {
      candidates.push_back(With(base.world, i, option));
    }
  }
  for (size_t i = 0; i < dimensions.size(); ++i) {
    if (!IsPresets(dimensions[i])) continue;
    for (size_t option = 1; option < OptionsOf(dimensions[i]); ++option) {
      candidates.push_back(With(defaults, i, option));
    }
  }
  // All combinations except the base and the single options.
  size_t left = combinations - std::min(combinations, 1 + singles);
  const size_t fewest = Changed(base.world).size() + 2;
  std::mt19937_64 random(seed);
  constexpr int kTries = 100000;  // enough if few combinations are left
  for (int i = 0; i < kTries && left > 0 && candidates.size() < count; ++i) {
    Candidate drawn = RandomCandidate(dimensions, base, random);
    if (Changed(drawn).size() < fewest ||
        std::count(candidates.begin(), candidates.end(), drawn) > 0) {
      continue;
    }
    candidates.push_back(std::move(drawn));
    --left;
  }
  candidates.resize(std::min(candidates.size(), count));
  return candidates;
}

std::optional<Candidate> CombineBest(
    const Dimensions& dimensions, const SearchBase& base,
    const std::vector<Candidate>& candidates,
    const std::vector<std::optional<double>>& speeds) {
  const double base_speed = SpeedOf(base.world, candidates, speeds).value_or(0);
  Candidate best = base.world;
  size_t better = 0;
  for (size_t i = 0; i < dimensions.size(); ++i) {
    if (!Varies(dimensions[i], base)) continue;
    double fastest = base_speed;
    for (size_t option = 1; option < OptionsOf(dimensions[i]); ++option) {
      const std::optional<double> speed =
          SpeedOf(With(base.world, i, option), candidates, speeds);
      if (!speed || *speed <= fastest) continue;
      fastest = *speed;
      best.options[i] = option;
    }
    if (best.options[i] != base.world.options[i]) ++better;
  }
  if (better < 2) return std::nullopt;
  return best;
}

Candidate Without(const Candidate& candidate, size_t dimension) {
  Candidate without = candidate;
  without.options[dimension] = 0;
  return without;
}

}  // namespace hvdlite::scaling_sweep
