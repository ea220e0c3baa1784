// Checks whether a spec is valid.
#include <cmath>
#include <cstdint>
#include <initializer_list>
#include <limits>
#include <set>
#include <string>

#include "absl/status/statusor.h"
#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "absl/strings/string_view.h"
#include "base/status_macros.h"
#include "tools/scaling_sweep/run/configuration.h"
#include "tools/scaling_sweep/run/spec.h"

namespace hvdlite::scaling_sweep {
namespace {

template <typename... Parts>
absl::Status Error(const Parts&... parts) {
  return absl::InvalidArgumentError(absl::StrCat(parts...));
}

// Limits far beyond any machine; their products do not overflow.
constexpr int64_t kMostRanks = 1'000'000;
constexpr int64_t kMostThreads = 1'000;
constexpr int64_t kMostRepeats = 1'000'000;
constexpr int64_t kMost = std::numeric_limits<int64_t>::max();

absl::Status CheckRange(absl::string_view field, int64_t value, int64_t least,
                        int64_t most) {
  if (value < least) return Error(field, value, " is not at least ", least);
  if (value > most) return Error(field, value, " is more than ", most);
  return absl::OkStatus();
}

// Checks the fields that both a spec and a setting have.
template <typename Lists>
absl::Status CheckLists(const std::string& where, const Lists& lists) {
  for (const int32_t ranks : lists.ranks()) {
    HVDLITE_RETURN_IF_ERROR(
        CheckRange(absl::StrCat(where, "ranks: "), ranks, 1, kMostRanks));
  }
  for (const World& world : lists.world()) {
    const std::string in = absl::StrCat(where, "world: ");
    HVDLITE_RETURN_IF_ERROR(
        CheckRange(absl::StrCat(in, "nodes: "), world.nodes(), 0, kMostRanks));
    HVDLITE_RETURN_IF_ERROR(CheckRange(absl::StrCat(in, "ranks_per_node: "),
                                       world.ranks_per_node(), 1, kMostRanks));
    HVDLITE_RETURN_IF_ERROR(CheckRange(
        absl::StrCat(in, "ranks: "),
        int64_t{world.nodes()} * world.ranks_per_node(), 0, kMostRanks));
  }
  for (const int32_t threads : lists.threads()) {
    HVDLITE_RETURN_IF_ERROR(
        CheckRange(absl::StrCat(where, "threads: "), threads, 0, kMostThreads));
  }
  const std::set<std::string> mappings = {"node", "socket", "numa", "core"};
  for (const std::string& mapping : lists.mapping()) {
    if (mappings.contains(mapping)) continue;
    return Error(where, "mapping: '", mapping, "' is none of ",
                 absl::StrJoin(mappings, ", "));
  }
  for (const Variable& variable : lists.environment()) {
    if (!variable.name().empty() && !absl::StrContains(variable.name(), "=")) {
      continue;
    }
    return Error(where, "environment: '", variable.name(),
                 "' is not a variable name");
  }
  return absl::OkStatus();
}

absl::Status CheckSetting(const Setting& setting) {
  const std::string where = absl::StrCat("setting '", setting.name(), "': ");
  HVDLITE_RETURN_IF_ERROR(CheckLists(where, setting));
  if (setting.alone() &&
      (setting.launcher_flag_size() > 0 || setting.mapping_size() > 0)) {
    return Error(where,
                 "alone: it runs without the launcher, so launcher_flag and "
                 "mapping are not allowed");
  }
  return absl::OkStatus();
}

absl::Status CheckSettings(const Spec& spec) {
  std::set<std::string> names;
  for (const Setting& setting : spec.setting()) {
    if (setting.name().empty() && spec.setting_size() > 1) {
      return Error("setting: a name is missing; several settings need names");
    }
    if (!names.insert(setting.name()).second) {
      return Error("setting: two have the name '", setting.name(), "'");
    }
    HVDLITE_RETURN_IF_ERROR(CheckSetting(setting));
  }
  return absl::OkStatus();
}

absl::Status CheckBatch(const Spec& spec) {
  if (!spec.has_batch()) return absl::OkStatus();
  HVDLITE_RETURN_IF_ERROR(
      CheckRange("batch: size: ", spec.batch().size(), 1, kMost));
  if (spec.batch().argument() == WHOSE_UNSPECIFIED) {
    return Error(
        "batch: argument is missing: WORLD if the program's flag is the batch "
        "size of all ranks together, or RANK if it is that of one rank");
  }
  return absl::OkStatus();
}

absl::Status CheckNumbers(const Spec& spec) {
  struct Range {
    const char* field;
    int64_t value;
    int64_t least = 0;
    int64_t most = kMost;
  };
  const Tune& tune = spec.tune();
  for (const Range& range : std::initializer_list<Range>{
           {"repeats: ", spec.repeats(), 1, kMostRepeats},
           {"warmup_intervals: ", spec.warmup_intervals()},
           {"items_per_epoch: ", spec.items_per_epoch()},
           {"cores_per_node: ", spec.cores_per_node()},
           {"tune: candidates: ", tune.candidates()},
           {"tune: first_repeats: ", tune.first_repeats()},
           {"tune: final_repeats: ", tune.final_repeats()}}) {
    HVDLITE_RETURN_IF_ERROR(
        CheckRange(range.field, range.value, range.least, range.most));
  }
  if (!(spec.time_limit_seconds() >= 0) ||
      std::isinf(spec.time_limit_seconds())) {
    return Error("time_limit_seconds: ", spec.time_limit_seconds(),
                 " is not a valid number of seconds");
  }
  if (spec.scaling() == SCALING_UNSPECIFIED) {
    return Error(
        "scaling: write STRONG (the same work for any number of ranks) or WEAK "
        "(the work grows with the number of ranks)");
  }
  return absl::OkStatus();
}

absl::Status CheckHostNames(const Spec& spec) {
  for (const std::string& host : spec.host()) {
    if (host.empty() || absl::StrContains(host, " ")) {
      return Error("host: '", host, "' is not a host name");
    }
    const size_t colon = host.rfind(':');  // note: 2001:db8::1 is a valid name
    if (colon != std::string::npos && host.find(':') == colon) {
      return Error("host: '", host, "' has a number of slots; write '",
                   host.substr(0, colon),
                   "', because the worlds define the ranks of a node");
    }
  }
  return absl::OkStatus();
}

absl::Status CheckTune(const Tune& tune) {
  std::set<std::string> names;
  for (const Dimension& dimension : tune.dimension()) {
    if (dimension.name().empty() || !names.insert(dimension.name()).second) {
      return Error("tune: dimensions need different names; invalid: '",
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
                     "' need different names; invalid: '", option.name(), "'");
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
        "command: {report} is missing, so scaling_sweep cannot read a report; "
        "for the trainers, add --report {report}");
  }
  if (spec.has_batch() && !has_batch) {
    return Error("batch: no text contains {batch}, so it has no effect");
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
        "command: the program is missing; write, for example, command: "
        "[\"train_resnet50\", \"--report\", \"{report}\"]");
  }
  HVDLITE_RETURN_IF_ERROR(CheckLimits(spec));
  HVDLITE_RETURN_IF_ERROR(CheckHostNames(spec));
  HVDLITE_RETURN_IF_ERROR(CheckBatch(spec));
  HVDLITE_RETURN_IF_ERROR(CheckPlaceholders(spec));
  HVDLITE_RETURN_IF_ERROR(CheckTune(spec.tune()));
  return Configurations(spec).status();
}

}  // namespace hvdlite::scaling_sweep
