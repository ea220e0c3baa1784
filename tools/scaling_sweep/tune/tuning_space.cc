#include "tools/scaling_sweep/tune/tuning_space.h"

#include <algorithm>
#include <initializer_list>
#include <set>
#include <utility>
#include <vector>

#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"

namespace hvdlite::scaling_sweep {
namespace {

constexpr char kPreset[] = "preset";

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
  // The presets, each with the number of ranks that it is meant for.
  std::vector<std::pair<const char*, int>> presets;
  if (machine.processor == "A64FX") {
    presets = {{"a64fx-numa", machine.numa_nodes}, {"a64fx-node", 1}};
  } else if (machine.cpu_flags.contains("sse2")) {  // x86
    presets = {{"xeon-socket", machine.sockets}, {"interleave", 1}};
  }
  for (const auto& [name, ranks] : presets) {
    AddLauncherFlags(dimension, name, {"--preset", name});
    dimension.mutable_option()->rbegin()->add_ranks(ranks);
  }
  return dimension;
}

// Powers of two up to the number of cores, and that number, as ranks; each with
// the number of threads that fills the cores.
std::vector<int> RankNumbers(int cores) {
  std::vector<int> numbers;
  for (int ranks = 1; ranks < cores; ranks *= 2) numbers.push_back(ranks);
  numbers.push_back(cores);
  return numbers;
}

// The worlds on one host and, if there are several, on all of them.
Dimension Worlds(int cores, int hosts) {
  Dimension dimension = Named("world", "1 rank");
  dimension.mutable_option(0)->add_ranks(1);
  for (const int ranks : RankNumbers(cores)) {
    const int threads = cores / ranks;
    Setting& option = AddOption(dimension, absl::StrCat(ranks, "x", threads));
    option.add_ranks(ranks);
    option.add_threads(threads);
  }
  if (hosts == 1) return dimension;
  for (const int ranks : RankNumbers(cores)) {
    const int threads = cores / ranks;
    Setting& option = AddOption(
        dimension, absl::StrCat(hosts, " nodes of ", ranks, "x", threads));
    World& world = *option.add_world();
    world.set_nodes(hosts);
    world.set_ranks_per_node(ranks);
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

// Kernels that this processor can run. OpenBLAS chooses by model number; for a
// model newer than itself it may choose the kernels of a Pentium 4.
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

// How hvdlite divides gradients into buckets and chunks; its defaults are 64, 4
// and 4 MiB.
void AddBatching(Dimensions& dimensions) {
  const auto add = [&](const char* name, const char* variable,
                       const char* default_size,
                       std::initializer_list<const char*> sizes) {
    dimensions.push_back(Named(name, default_size));
    for (const char* size : sizes) {
      AddEnvironment(dimensions.back(), size, {{variable, size}});
    }
  };
  add("fusion", "HVDLITE_FUSION_THRESHOLD_BYTES", "64M", {"16M", "256M"});
  add("min batch", "HVDLITE_MIN_BATCH_BYTES", "4M", {"1M", "16M"});
  add("chunk", "HVDLITE_CHUNK_BYTES", "4M", {"1M", "16M"});
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

bool IsPresets(const Dimension& dimension) {
  return dimension.name() == kPreset;
}

bool IsWorlds(const Dimension& dimension) {
  return !IsPresets(dimension) &&
         std::any_of(dimension.option().begin(), dimension.option().end(),
                     [](const Setting& option) {
                       return option.ranks_size() + option.world_size() > 0;
                     });
}

bool IsBetweenRanks(const Dimension& dimension) {
  return std::all_of(
      dimension.option().begin() + 1, dimension.option().end(),
      [](const Setting& option) {
        return option.launcher_flag().empty() && option.argument().empty() &&
               option.mapping().empty() && option.threads().empty() &&
               !option.environment().empty() &&
               std::all_of(
                   option.environment().begin(), option.environment().end(),
                   [](const Variable& variable) {
                     return absl::StartsWith(variable.name(), "HVDLITE_");
                   });
      });
}

Dimensions BuiltInDimensions(const support::MachineFacts& machine,
                             const std::string& program, int hosts) {
  Dimensions dimensions = {Worlds(machine.cores, hosts),
                           BlasKernels(machine.cpu_flags), Mappings(machine),
                           Allocators()};
  AddBatching(dimensions);
  dimensions.push_back(OpenMp());
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
  if (own.empty())
    return BuiltInDimensions(machine, spec.command(0),
                             std::max(1, spec.host_size()));
  Dimensions dimensions(own.begin(), own.end());
  const bool has_presets = std::any_of(
      own.begin(), own.end(),
      [](const Dimension& dimension) { return dimension.name() == kPreset; });
  if (has_presets) return dimensions;
  Dimension presets = Presets(machine);
  if (presets.option_size() > 1) dimensions.push_back(std::move(presets));
  return dimensions;
}

}  // namespace hvdlite::scaling_sweep
