#include "tools/scaling_sweep/tune/candidate.h"

#include <algorithm>
#include <random>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "base/status_macros.h"

namespace hvdlite::scaling_sweep {
namespace {

constexpr char kPreset[] = "preset";

Candidate Defaults(const Dimensions& dimensions) {
  return {.options = std::vector<size_t>(dimensions.size(), 0)};
}

// The dimensions in which it is not the default.
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

Candidate RandomCandidate(const Dimensions& dimensions,
                          std::mt19937_64& random) {
  Candidate candidate = Defaults(dimensions);
  for (size_t i = 0; i < dimensions.size(); ++i) {
    // A preset stands for a whole combination.
    if (dimensions[i].name() == kPreset) continue;
    candidate.options[i] = random() % OptionsOf(dimensions[i]);
  }
  return candidate;
}

// `more` after what is there, and instead of it where only one can count.
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
  return absl::StrCat(name, ", less hvdliterun's ", candidate.less);
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
  Spec first = spec;  // of its lists only what comes first
  first.clear_setting();
  if (candidate.alone) {
    setting.add_ranks(1);
    first.clear_threads();
  }
  HVDLITE_ASSIGN_OR_RETURN(const std::vector<Configuration> configurations,
                           ConfigurationsOf(first, setting));
  Configuration configuration = configurations.front();
  const Ablation& ablation = candidate.ablation;
  configuration.unset = ablation.unset;
  configuration.launcher_flags.insert(configuration.launcher_flags.end(),
                                      ablation.launcher_flags.begin(),
                                      ablation.launcher_flags.end());
  return configuration;
}

std::vector<Candidate> StartCandidates(const Dimensions& dimensions,
                                       size_t count, uint64_t seed) {
  std::vector<Candidate> candidates = {Defaults(dimensions),
                                       Defaults(dimensions)};
  candidates.front().alone = true;
  size_t combinations = 1;
  size_t singles = 0;
  for (const bool presets : {true, false}) {
    for (size_t i = 0; i < dimensions.size(); ++i) {
      if ((dimensions[i].name() == kPreset) != presets) continue;
      if (!presets) {
        combinations *= std::min<size_t>(OptionsOf(dimensions[i]), 1 << 16);
        combinations = std::min<size_t>(combinations, 1 << 16);
      }
      for (size_t option = 1; option < OptionsOf(dimensions[i]); ++option) {
        if (!presets && candidates.size() >= count) continue;
        if (!presets) ++singles;
        candidates.push_back(Defaults(dimensions));
        candidates.back().options[i] = option;
      }
    }
  }
  // All but the defaults and the single options.
  size_t left = combinations - std::min(combinations, 1 + singles);
  std::mt19937_64 random(seed);
  constexpr int kTries = 100000;  // where few combinations are left
  for (int i = 0; i < kTries && left > 0 && candidates.size() < count; ++i) {
    Candidate drawn = RandomCandidate(dimensions, random);
    if (Changed(drawn).size() < 2 ||
        std::count(candidates.begin(), candidates.end(), drawn) > 0) {
      continue;
    }
    candidates.push_back(std::move(drawn));
    --left;
  }
  return candidates;
}

std::optional<Candidate> CombineBest(
    const Dimensions& dimensions, const std::vector<Candidate>& candidates,
    const std::vector<std::optional<double>>& speeds) {
  const auto speed_of = [&](const Candidate& candidate) {
    const auto found =
        std::find(candidates.begin(), candidates.end(), candidate);
    return found == candidates.end()
               ? std::nullopt
               : speeds[static_cast<size_t>(found - candidates.begin())];
  };
  const std::optional<double> defaults = speed_of(Defaults(dimensions));
  Candidate best = Defaults(dimensions);
  for (size_t i = 0; i < dimensions.size(); ++i) {
    if (dimensions[i].name() == kPreset) continue;
    double fastest = defaults.value_or(0);
    for (size_t option = 1; option < OptionsOf(dimensions[i]); ++option) {
      Candidate single = Defaults(dimensions);
      single.options[i] = option;
      const std::optional<double> speed = speed_of(single);
      if (!speed || *speed <= fastest) continue;
      fastest = *speed;
      best.options[i] = option;
    }
  }
  if (Changed(best).size() < 2) return std::nullopt;
  return best;
}

Candidate Without(const Candidate& candidate, size_t dimension) {
  Candidate without = candidate;
  without.options[dimension] = 0;
  return without;
}

}  // namespace hvdlite::scaling_sweep
