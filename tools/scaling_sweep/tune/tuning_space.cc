#include "tools/scaling_sweep/tune/tuning_space.h"

#include <algorithm>
#include <initializer_list>
#include <utility>

#include "absl/strings/str_cat.h"

namespace hvdlite::scaling_sweep {
namespace {

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

Dimension Presets(const Machine& machine) {
  Dimension dimension = Named("preset", "none");
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

Dimension Mappings(const Machine& machine) {
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

Dimensions BuiltInDimensions(const Machine& machine,
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

Dimensions DimensionsOf(const Spec& spec, const Machine& machine) {
  const auto& own = spec.tune().dimension();
  if (own.empty()) return BuiltInDimensions(machine, spec.command(0));
  Dimensions dimensions(own.begin(), own.end());
  const bool has_presets = std::any_of(
      own.begin(), own.end(),
      [](const Dimension& dimension) { return dimension.name() == "preset"; });
  if (!has_presets) dimensions.push_back(Presets(machine));
  return dimensions;
}

}  // namespace hvdlite::scaling_sweep
