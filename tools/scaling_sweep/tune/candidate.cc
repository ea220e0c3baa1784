#include "tools/scaling_sweep/tune/candidate.h"

#include <algorithm>
#include <initializer_list>
#include <random>
#include <utility>

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

using Pairs = std::initializer_list<std::pair<const char*, const char*>>;

Setting& AddOption(Dimension& dimension, const std::string& name) {
  Setting& option = *dimension.add_option();
  option.set_name(name);
  return option;
}

void AddEnvironment(Dimension& dimension, const std::string& name,
                    const Pairs& variables) {
  Setting& option = AddOption(dimension, name);
  for (const auto& [variable, value] : variables) {
    Variable& added = *option.add_environment();
    added.set_name(variable);
    added.set_value(value);
  }
}

void AddLauncherFlags(Dimension& dimension, const std::string& name,
                      std::initializer_list<const char*> flags) {
  Setting& option = AddOption(dimension, name);
  for (const char* flag : flags) option.add_launcher_flag(flag);
}

Dimension Named(const char* name, const char* default_option) {
  Dimension dimension;
  dimension.set_name(name);
  AddOption(dimension, default_option);
  return dimension;
}

Dimension Presets(const support::MachineFacts& machine) {
  Dimension dimension = Named(kPreset, "none");
  // As many ranks as each is meant for.
  const std::pair<const char*, int> presets[] = {
      {"xeon-socket", machine.sockets},
      {"interleave", 1},
      {"a64fx-numa", machine.numa_nodes},
      {"a64fx-node", 1}};
  for (const auto& [name, ranks] : presets) {
    AddLauncherFlags(dimension, name, {"--preset", name});
    dimension.mutable_option()->rbegin()->add_ranks(ranks);
  }
  return dimension;
}

// Ranks that divide the cores, with as many threads as fill them.
Dimension Worlds(int cores) {
  Dimension dimension = Named("world", "1 rank");
  dimension.mutable_option(0)->add_ranks(1);
  for (int ranks = 1; ranks <= cores;
       ranks = ranks < 4 ? ranks + 1 : ranks * 2) {
    if (cores % ranks != 0) continue;
    const int threads = cores / ranks;
    Setting& option = AddOption(dimension, absl::StrCat(ranks, "x", threads));
    option.add_ranks(ranks);
    option.add_threads(threads);
  }
  return dimension;
}

Dimension Mappings(const support::MachineFacts& machine) {
  Dimension dimension = Named("mapping", "default");
  const auto add = [&](const char* mapping) {
    AddOption(dimension, mapping).add_mapping(mapping);
  };
  add("node");
  add("core");
  if (machine.numa_nodes > 1) add("numa");
  if (machine.sockets > 1) add("socket");
  return dimension;
}

Dimension Allocators() {
  Dimension dimension = Named("allocator", "default");
  AddLauncherFlags(dimension, "jemalloc", {"--alloc", "jemalloc"});
  AddLauncherFlags(dimension, "tcmalloc", {"--alloc", "tcmalloc"});
  return dimension;
}

Dimension OpenMp() {
  Dimension dimension = Named("openmp", "default");
  AddEnvironment(dimension, "bind",
                 {{"OMP_PROC_BIND", "close"}, {"OMP_PLACES", "cores"}});
  AddEnvironment(dimension, "active", {{"OMP_WAIT_POLICY", "active"}});
  AddEnvironment(dimension, "passive", {{"OMP_WAIT_POLICY", "passive"}});
  return dimension;
}

// Kernels that this processor can run: OpenBLAS chooses by model number, and
// for one newer than itself may choose those of a Pentium 4.
Dimension BlasKernels(const std::set<std::string>& flags) {
  Dimension dimension = Named("blas", "OpenBLAS's choice");
  const auto has = [&](std::initializer_list<const char*> wanted) {
    return std::all_of(wanted.begin(), wanted.end(),
                       [&](const char* flag) { return flags.contains(flag); });
  };
  if (has({"avx2", "fma"})) {
    AddEnvironment(dimension, "Haswell", {{"OPENBLAS_CORETYPE", "Haswell"}});
  }
  if (has({"avx512f", "avx512bw", "avx512dq", "avx512vl"})) {
    AddEnvironment(dimension, "SkylakeX", {{"OPENBLAS_CORETYPE", "SkylakeX"}});
  }
  return dimension;
}

Dimension MemoryPolicies() {
  Dimension dimension = Named("memory", "default");
  for (const char* policy : {"local", "interleave", "bind"}) {
    AddLauncherFlags(dimension, policy, {"--mem", policy});
  }
  return dimension;
}

Dimension MemoryFormats() {
  Dimension dimension = Named("memory format", "default");
  for (const char* format : {"nhwc", "onednn"}) {
    Setting& option = AddOption(dimension, format);
    option.add_argument("--memory-format");
    option.add_argument(format);
  }
  return dimension;
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

Dimensions BuiltInDimensions(const support::MachineFacts& machine,
                             const std::string& program) {
  Dimensions dimensions = {BlasKernels(machine.cpu_flags),
                           Worlds(machine.cores), Mappings(machine),
                           Allocators(), OpenMp()};
  dimensions.push_back(Named("huge pages", "no"));
  AddLauncherFlags(dimensions.back(), "yes", {"--huge-pages"});
  if (machine.numa_nodes > 1) dimensions.push_back(MemoryPolicies());
  if (program.substr(program.rfind('/') + 1) == "train_resnet50") {
    dimensions.push_back(MemoryFormats());
  }
  dimensions.push_back(Presets(machine));
  std::erase_if(dimensions, [](const Dimension& dimension) {
    return dimension.option_size() < 2;
  });
  return dimensions;
}

Dimensions DimensionsOf(const Spec& spec,
                        const support::MachineFacts& machine) {
  const auto& own = spec.tune().dimension();
  if (own.empty()) return BuiltInDimensions(machine, spec.command(0));
  Dimensions dimensions(own.begin(), own.end());
  const bool has_presets = std::any_of(
      own.begin(), own.end(),
      [](const Dimension& dimension) { return dimension.name() == kPreset; });
  if (!has_presets) dimensions.push_back(Presets(machine));
  return dimensions;
}

int RepeatsAfterRound(int first_repeats, int round) {
  return first_repeats << std::min(round, 16);
}

std::vector<size_t> BetterHalf(
    const std::vector<std::optional<double>>& speeds) {
  std::vector<size_t> indices;
  for (size_t i = 0; i < speeds.size(); ++i) {
    if (speeds[i]) indices.push_back(i);
  }
  std::stable_sort(indices.begin(), indices.end(),
                   [&](size_t a, size_t b) { return *speeds[a] > *speeds[b]; });
  indices.resize((indices.size() + 1) / 2);
  return indices;
}

}  // namespace hvdlite::scaling_sweep
