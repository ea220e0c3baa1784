#include "tools/scaling_sweep/run/configuration.h"

#include <algorithm>
#include <limits>
#include <numeric>
#include <set>

#include "absl/strings/str_cat.h"
#include "base/status_macros.h"

namespace hvdlite::scaling_sweep {
namespace {

absl::StatusOr<int64_t> BatchOf(const Spec& spec, int ranks) {
  if (!spec.has_batch()) return 0;
  const Batch& batch = spec.batch();
  Whose fixed = batch.fixed();
  if (fixed == WHOSE_UNSPECIFIED) {
    fixed = spec.scaling() == STRONG ? WORLD : RANK;
  }
  if (fixed == batch.argument()) return batch.size();
  if (fixed == RANK) {
    if (batch.size() > std::numeric_limits<int64_t>::max() / ranks) {
      return absl::InvalidArgumentError(
          absl::StrCat("batch: size ", batch.size(), " for each of ", ranks,
                       " ranks is too large in total"));
    }
    return batch.size() * ranks;
  }
  if (batch.size() % ranks != 0) {
    return absl::InvalidArgumentError(
        absl::StrCat("batch: the world's ", batch.size(),
                     " cannot be divided equally among ", ranks, " ranks"));
  }
  return batch.size() / ranks;
}

// Merges variables; those of `second` replace those of `first`.
template <typename First, typename Second>
Variables Joined(const First& first, const Second& second) {
  Variables joined;
  const auto add = [&joined](const Variable& variable) {
    for (auto& [name, value] : joined) {
      if (name == variable.name()) {
        value = variable.value();
        return;
      }
    }
    joined.emplace_back(variable.name(), variable.value());
  };
  std::for_each(first.begin(), first.end(), add);
  std::for_each(second.begin(), second.end(), add);
  return joined;
}

template <typename Lists>
std::vector<World> WorldsOf(const Lists& lists) {
  std::vector<World> worlds;
  for (const int32_t ranks : lists.ranks()) {
    worlds.emplace_back().set_ranks_per_node(ranks);
  }
  worlds.insert(worlds.end(), lists.world().begin(), lists.world().end());
  return worlds;
}

// Returns `own`; `common` if that is empty; or the value `otherwise`.
template <typename Value, typename List>
std::vector<Value> FirstOf(const List& own, const List& common,
                           const Value& otherwise) {
  std::vector<Value> values(own.begin(), own.end());
  if (values.empty()) values.assign(common.begin(), common.end());
  if (values.empty()) values.push_back(otherwise);
  return values;
}

absl::Status CheckAlone(const Configuration& configuration) {
  if (!configuration.alone || configuration.ranks() == 1) {
    return absl::OkStatus();
  }
  return absl::InvalidArgumentError(absl::StrCat(
      "setting '", configuration.setting, "': alone: cannot start ",
      configuration.ranks(), " ranks without a launcher; set ranks: 1"));
}

}  // namespace

std::string Key(const Configuration& configuration) {
  return absl::StrCat("nodes=", configuration.nodes,
                      " ranks_per_node=", configuration.ranks_per_node,
                      " threads=", configuration.threads,
                      " mapping=", configuration.mapping,
                      " setting=", configuration.setting);
}

std::string Describe(const Configuration& configuration) {
  const int ranks = configuration.ranks();
  std::string text = absl::StrCat(ranks, ranks == 1 ? " rank" : " ranks");
  if (configuration.nodes > 1) {
    absl::StrAppend(&text, " on ", configuration.nodes, " nodes");
  }
  if (configuration.threads > 0) {
    absl::StrAppend(&text, " x ", configuration.threads,
                    configuration.threads == 1 ? " thread" : " threads");
  }
  if (!configuration.mapping.empty()) {
    absl::StrAppend(&text, ", by ", configuration.mapping);
  }
  if (!configuration.setting.empty()) {
    absl::StrAppend(&text, ", ", configuration.setting);
  }
  return text;
}

absl::StatusOr<std::vector<Configuration>> ConfigurationsOf(
    const Spec& spec, const Setting& setting) {
  std::vector<World> worlds = WorldsOf(setting);
  if (worlds.empty()) worlds = WorldsOf(spec);
  if (worlds.empty()) {
    return absl::InvalidArgumentError(
        "ranks are missing; write ranks: [1, 2], or world { nodes: 2 "
        "ranks_per_node: 2 }");
  }
  const auto mappings =
      setting.alone()
          ? std::vector<std::string>{""}
          : FirstOf<std::string>(setting.mapping(), spec.mapping(), "");
  std::vector<Configuration> configurations;
  for (const World& world : worlds) {
    for (const std::string& mapping : mappings) {
      for (const int threads :
           FirstOf<int>(setting.threads(), spec.threads(), 0)) {
        Configuration configuration = {
            .nodes = std::max(1, world.nodes()),
            .ranks_per_node = world.ranks_per_node(),
            .threads = threads,
            .mapping = mapping,
            .setting = setting.name(),
            .alone = setting.alone(),
            .environment = Joined(spec.environment(), setting.environment()),
            .arguments = {setting.argument().begin(),
                          setting.argument().end()}};
        if (!setting.alone()) {
          configuration.launcher_flags = {spec.launcher_flag().begin(),
                                          spec.launcher_flag().end()};
          configuration.launcher_flags.insert(
              configuration.launcher_flags.end(),
              setting.launcher_flag().begin(), setting.launcher_flag().end());
        }
        HVDLITE_RETURN_IF_ERROR(CheckAlone(configuration));
        HVDLITE_ASSIGN_OR_RETURN(configuration.batch,
                                 BatchOf(spec, configuration.ranks()));
        configurations.push_back(std::move(configuration));
      }
    }
  }
  return configurations;
}

absl::Status CheckHosts(const Spec& spec, const Configuration& configuration) {
  if (configuration.nodes == 1 || configuration.nodes <= spec.host_size()) {
    return absl::OkStatus();
  }
  return absl::InvalidArgumentError(absl::StrCat(
      "host: ", configuration.nodes, " nodes need as many hosts; ",
      spec.host_size(), spec.host_size() == 1 ? " is" : " are",
      " named; add --hosts h1,h2, or host: [\"h1\", \"h2\"] in the spec file"));
}

absl::StatusOr<std::vector<Configuration>> Configurations(const Spec& spec) {
  std::vector<Configuration> all;
  std::set<std::string> keys;
  std::vector<Setting> settings(spec.setting().begin(), spec.setting().end());
  if (settings.empty()) settings.emplace_back();
  for (const Setting& setting : settings) {
    HVDLITE_ASSIGN_OR_RETURN(std::vector<Configuration> configurations,
                             ConfigurationsOf(spec, setting));
    for (Configuration& configuration : configurations) {
      const std::string key = Key(configuration);
      if (!keys.insert(key).second) {
        return absl::InvalidArgumentError(
            absl::StrCat("the configuration '", Describe(configuration),
                         "' occurs twice; remove one"));
      }
      all.push_back(std::move(configuration));
    }
  }
  return all;
}

std::vector<PlannedRun> RunOrder(size_t configurations, int repeats) {
  std::vector<PlannedRun> runs;
  for (int repeat = 0; repeat < repeats; ++repeat) {
    std::vector<size_t> indices(configurations);
    std::iota(indices.begin(), indices.end(), size_t{0});
    if (repeat % 2 == 1) std::reverse(indices.begin(), indices.end());
    for (const size_t index : indices) runs.push_back({index, repeat});
  }
  return runs;
}

}  // namespace hvdlite::scaling_sweep
