// What makes a SPEC invalid.
#include <cmath>
#include <cstdint>
#include <set>
#include <string>

#include "absl/status/statusor.h"
#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "base/status_macros.h"
#include "tools/scaling_sweep/run/configuration.h"
#include "tools/scaling_sweep/run/spec.h"

namespace hvdlite::scaling_sweep {
namespace {

template <typename... Parts>
absl::Status Error(const Parts&... parts) {
  return absl::InvalidArgumentError(absl::StrCat(parts...));
}

constexpr const char* kMappings[] = {"node", "socket", "numa", "core"};

absl::Status CheckMapping(const std::string& mapping) {
  for (const char* known : kMappings) {
    if (mapping == known) return absl::OkStatus();
  }
  return Error("mapping: '", mapping, "' is none of ",
               absl::StrJoin(kMappings, ", "));
}

absl::Status CheckEnvironment(
    const std::string& where,
    const google::protobuf::RepeatedPtrField<Variable>& variables) {
  for (const Variable& variable : variables) {
    if (variable.name().empty() || absl::StrContains(variable.name(), "=")) {
      return Error(where, "environment: '", variable.name(),
                   "' is no name of a variable");
    }
  }
  return absl::OkStatus();
}

// Far beyond any machine; products of them fit.
constexpr int kMostRanks = 1'000'000;
constexpr int kMostThreads = 1'000;
constexpr int kMostRepeats = 1'000'000;

// What both a SPEC and a setting of it have.
template <typename Lists>
absl::Status CheckLists(const std::string& where, const Lists& lists) {
  for (const int32_t ranks : lists.ranks()) {
    if (ranks < 1) {
      return Error(where, "ranks: ", ranks, " is not at least 1");
    }
    if (ranks > kMostRanks) {
      return Error(where, "ranks: ", ranks, " is more than ", kMostRanks);
    }
  }
  for (const World& world : lists.world()) {
    if (world.nodes() < 0 || world.ranks_per_node() < 1) {
      return Error(where, "world: ", world.nodes(), " nodes of ",
                   world.ranks_per_node(),
                   " ranks; both numbers must be at least 1");
    }
    if (int64_t{world.nodes()} * world.ranks_per_node() > kMostRanks ||
        world.ranks_per_node() > kMostRanks) {
      return Error(where, "world: ", world.nodes(), " nodes of ",
                   world.ranks_per_node(), " ranks are more than ", kMostRanks,
                   " ranks");
    }
  }
  for (const int32_t threads : lists.threads()) {
    if (threads < 0) {
      return Error(where, "threads: ", threads,
                   " is negative; 0 means the launcher's choice");
    }
    if (threads > kMostThreads) {
      return Error(where, "threads: ", threads, " is more than ", kMostThreads);
    }
  }
  for (const std::string& mapping : lists.mapping()) {
    HVDLITE_RETURN_IF_ERROR(CheckMapping(mapping));
  }
  return CheckEnvironment(where, lists.environment());
}

absl::Status CheckSetting(const Setting& setting) {
  const std::string where = absl::StrCat("setting '", setting.name(), "': ");
  HVDLITE_RETURN_IF_ERROR(CheckLists(where, setting));
  if (setting.alone() &&
      (setting.launcher_flag_size() > 0 || setting.mapping_size() > 0)) {
    return Error(where,
                 "alone: it runs without the launcher, so it can have no "
                 "launcher_flag and no mapping");
  }
  return absl::OkStatus();
}

absl::Status CheckSettings(const Spec& spec) {
  std::set<std::string> names;
  for (const Setting& setting : spec.setting()) {
    if (setting.name().empty() && spec.setting_size() > 1) {
      return Error("setting: one of several has no name");
    }
    if (!names.insert(setting.name()).second) {
      return Error("setting: two are called '", setting.name(), "'");
    }
    HVDLITE_RETURN_IF_ERROR(CheckSetting(setting));
  }
  return absl::OkStatus();
}

absl::Status CheckBatch(const Spec& spec) {
  if (!spec.has_batch()) return absl::OkStatus();
  if (spec.batch().size() < 1) {
    return Error("batch: size ", spec.batch().size(), " is not at least 1");
  }
  if (spec.batch().argument() == WHOSE_UNSPECIFIED) {
    return Error(
        "batch: argument must say whose batch the program's flag means: WORLD "
        "(all ranks' together) or RANK");
  }
  return absl::OkStatus();
}

absl::Status CheckNumbers(const Spec& spec) {
  if (spec.repeats() < 1) {
    return Error("repeats: ", spec.repeats(), " is not at least 1");
  }
  if (spec.repeats() > kMostRepeats) {
    return Error("repeats: ", spec.repeats(), " is more than ", kMostRepeats);
  }
  if (!(spec.time_limit_seconds() >= 0) ||
      std::isinf(spec.time_limit_seconds())) {
    return Error("time_limit_seconds: ", spec.time_limit_seconds(),
                 " is no number of seconds");
  }
  if (spec.warmup_intervals() < 0 || spec.items_per_epoch() < 0 ||
      spec.cores_per_node() < 0) {
    return Error(
        "warmup_intervals, items_per_epoch and cores_per_node must not be "
        "negative");
  }
  if (spec.scaling() == SCALING_UNSPECIFIED) {
    return Error(
        "scaling: say STRONG (the same work for all numbers of ranks) or WEAK "
        "(work grows with them)");
  }
  return absl::OkStatus();
}

absl::Status CheckHostNames(const Spec& spec) {
  for (const std::string& host : spec.host()) {
    if (host.empty() || absl::StrContains(host, " ")) {
      return Error("host: '", host, "' is no name of a host");
    }
    const size_t colon = host.rfind(':');  // but 2001:db8::1 is a name
    if (colon != std::string::npos && host.find(':') == colon) {
      return Error("host: '", host, "' has a number of slots; say '",
                   host.substr(0, colon),
                   "', since worlds say how many ranks a node has");
    }
  }
  return absl::OkStatus();
}

absl::Status CheckTune(const Tune& tune) {
  if (tune.candidates() < 0 || tune.first_repeats() < 0 ||
      tune.final_repeats() < 0) {
    return Error("tune: its numbers must not be negative");
  }
  std::set<std::string> names;
  for (const Dimension& dimension : tune.dimension()) {
    if (dimension.name().empty() || !names.insert(dimension.name()).second) {
      return Error("tune: dimensions need names of their own, not '",
                   dimension.name(), "'");
    }
    if (dimension.option_size() < 2) {
      return Error("tune: dimension '", dimension.name(),
                   "' needs two options or more");
    }
    std::set<std::string> options;
    for (const Setting& option : dimension.option()) {
      if (option.name().empty() || !options.insert(option.name()).second) {
        return Error("tune: options of '", dimension.name(),
                     "' need names of their own, not '", option.name(), "'");
      }
      if (option.ranks_size() + option.world_size() > 1 ||
          option.mapping_size() > 1 || option.threads_size() > 1) {
        return Error("tune: option '", option.name(), "' of '",
                     dimension.name(),
                     "' has more than one world, mapping or thread number");
      }
      HVDLITE_RETURN_IF_ERROR(CheckSetting(option));
    }
  }
  return absl::OkStatus();
}

absl::Status CheckPlaceholders(const Spec& spec) {
  Spec visited = spec;
  absl::Status status;
  bool has_batch = false;
  VisitTexts(visited, [&](const char* field, const std::string& text) {
    status.Update(CheckPlaceholderNames(field, text));
    if (!absl::StrContains(text, "{batch}")) return;
    has_batch = true;
    if (!spec.has_batch()) {
      status.Update(Error(field, ": {batch} needs a batch { size: ... }"));
    }
  });
  HVDLITE_RETURN_IF_ERROR(status);
  if (!absl::StrContains(absl::StrJoin(spec.command(), " "), "{report}")) {
    return Error(
        "command: has no {report}, so that there would be nothing to read; "
        "trainers take --report {report}");
  }
  if (spec.has_batch() && !has_batch) {
    return Error("batch: there is no {batch} that it could replace");
  }
  return absl::OkStatus();
}

}  // namespace

absl::Status CheckLimits(const Spec& spec) {
  HVDLITE_RETURN_IF_ERROR(CheckNumbers(spec));
  HVDLITE_RETURN_IF_ERROR(CheckLists("", spec));
  return CheckSettings(spec);
}

absl::Status CheckSpec(const Spec& spec) {
  if (spec.command().empty() || spec.command(0).empty()) {
    return Error(
        "command: names no program; say command: [\"train_resnet50\", "
        "\"--report\", \"{report}\"] with its arguments");
  }
  HVDLITE_RETURN_IF_ERROR(CheckLimits(spec));
  HVDLITE_RETURN_IF_ERROR(CheckHostNames(spec));
  HVDLITE_RETURN_IF_ERROR(CheckBatch(spec));
  HVDLITE_RETURN_IF_ERROR(CheckPlaceholders(spec));
  HVDLITE_RETURN_IF_ERROR(CheckTune(spec.tune()));
  return Configurations(spec).status();
}

}  // namespace hvdlite::scaling_sweep
