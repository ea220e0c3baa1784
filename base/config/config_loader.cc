#include "base/config/config_loader.h"

#include <array>
#include <filesystem>
#include <limits>
#include <utility>
#include <variant>

#include "absl/algorithm/container.h"
#include "absl/strings/ascii.h"
#include "absl/strings/match.h"
#include "absl/strings/numbers.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_format.h"
#include "absl/strings/str_join.h"
#include "absl/strings/str_split.h"
#include "base/commit_store.h"
#include "base/end_note.h"
#include "base/launcher_environment.h"
#include "base/status_macros.h"

namespace hvdlite {
namespace {

constexpr char kPrefix[] = "HVDLITE_";
constexpr char kStrict[] = "HVDLITE_STRICT";
constexpr int64_t kMaxCpu = 65535;

enum class Kind {
  kBytes,
  kInteger,
  kSeconds,
  kSwitch,
  kPath,
  kChoice,
  kCpu,
  kSteps,
  kNodes
};

using Field = std::variant<int64_t Config::*, double Config::*, bool Config::*,
                           std::string Config::*>;

// The one definition of every option; the variable's name follows from `name`.
// What an option means is said in config.h, with its default: `help` is the
// first sentence of it (config_table_test compares them, and makes the guide's
// table).
struct Option {
  const char* name;
  Field field;
  Kind kind;
  int64_t minimum = 0;  // of bytes and integers
  int64_t maximum = std::numeric_limits<int64_t>::max();
  const char* choices = "";  // of a choice, separated by ", "
  bool same_on_all_ranks = true;
  const char* help;
};

const auto& Options() {
  static const auto* const options = new std::array<Option, 26>{{
      {.name = "fusion_threshold_bytes",
       .field = &Config::fusion_threshold_bytes,
       .kind = Kind::kBytes,
       .minimum = 1,
       .help = "a batch takes no more tensors once it has this many "
               "bytes"},
      {.name = "min_batch_bytes",
       .field = &Config::min_batch_bytes,
       .kind = Kind::kBytes,
       .help = "a batch that nobody waits for starts when this much is "
               "ready"},
      {.name = "chunk_bytes",
       .field = &Config::chunk_bytes,
       .kind = Kind::kBytes,
       .minimum = 64,
       .maximum = int64_t{1} << 30,
       .help = "how much is packed, reduced and unpacked at a time where ranks "
               "share no memory"},
      {.name = "tree_arity",
       .field = &Config::tree_arity,
       .kind = Kind::kInteger,
       .minimum = 1,
       .maximum = kMaxTreeArity,
       .help = "children of a rank in the tree that readiness travels up"},
      {.name = "timeline",
       .field = &Config::timeline,
       .kind = Kind::kPath,
       .help = "file for a Chrome trace; empty: none"},
      {.name = "timeline_steps",
       .field = &Config::timeline_steps,
       .kind = Kind::kSteps,
       .help =
           "training steps to record, such as 100-110, 100- or 100, counted "
           "from 1 by the calls of DistributedOptimizer::step(); empty: all "
           "that happens"},
      {.name = "timeline_chunks",
       .field = &Config::timeline_chunks,
       .kind = Kind::kSwitch,
       .help = "record every chunk in the timeline"},
      {.name = "log_level",
       .field = &Config::log_level,
       .kind = Kind::kChoice,
       .choices = "debug, info, warning, error, off",
       .same_on_all_ranks = false,
       .help = "least severe log line that is printed"},
      {.name = "stall_warning_seconds",
       .field = &Config::stall_warning_seconds,
       .kind = Kind::kSeconds,
       .help = "when an operation that misses ranks is warned about; 0: "
               "never"},
      {.name = "stall_failure_seconds",
       .field = &Config::stall_failure_seconds,
       .kind = Kind::kSeconds,
       .help = "when the world is aborted for such an operation; 0: "
               "never"},
      {.name = "watchdog_seconds",
       .field = &Config::watchdog_seconds,
       .kind = Kind::kSeconds,
       .help = "longest call of the data plane before the world is aborted; 0: "
               "no limit"},
      {.name = "start_timeout_seconds",
       .field = &Config::start_timeout_seconds,
       .kind = Kind::kSeconds,
       .help = "longest init() before the process ends, since ranks are "
               "missing or stopped; 0: no limit"},
      {.name = "shutdown_timeout_seconds",
       .field = &Config::shutdown_timeout_seconds,
       .kind = Kind::kSeconds,
       .help = "how long shutdown() waits for the other ranks; 0: no "
               "limit"},
      {.name = "max_poll_pause_us",
       .field = &Config::max_poll_pause_us,
       .kind = Kind::kInteger,
       .minimum = 1,
       .maximum = 1'000'000,
       .help = "longest pause between two looks at a control channel "
               "that has to be polled"},
      {.name = "join_average_over_world",
       .field = &Config::join_average_over_world,
       .kind = Kind::kSwitch,
       .help = "averages divide by the process set's size after a join, "
               "too"},
      {.name = "backend",
       .field = &Config::backend,
       .kind = Kind::kChoice,
       .choices = "auto, mpi, single",
       .help = "auto and mpi: MPI, which works for one process, too; "
               "single: this process alone, without MPI"},
      {.name = "deterministic",
       .field = &Config::deterministic,
       .kind = Kind::kSwitch,
       .help = "sums have the same bits in every run"},
      {.name = "shared_memory",
       .field = &Config::shared_memory,
       .kind = Kind::kSwitch,
       .help = "ranks of a node reduce through shared memory"},
      {.name = "control_channel",
       .field = &Config::control_channel,
       .kind = Kind::kChoice,
       .choices = "auto, mpi, ucx",
       .help = "what carries control messages between nodes; auto: UCX, "
               "or MPI where UCX cannot be had"},
      {.name = "coordinator_core",
       .field = &Config::coordinator_core,
       .kind = Kind::kCpu,
       .same_on_all_ranks = false,
       .help = "the CPU that the coordinator's thread is bound to: a "
               "number, none, or auto: a core that the process may use "
               "and its OpenMP threads do not need"},
      {.name = "heartbeat_seconds",
       .field = &Config::heartbeat_seconds,
       .kind = Kind::kSeconds,
       .help = "when the world is aborted for a rank without a sign of "
               "life; 0: never"},
      {.name = "allreduce_table",
       .field = &Config::allreduce_table,
       .kind = Kind::kPath,
       .help = "file with the measured choice of allreduce algorithms; "
               "empty: the built-in one"},
      {.name = "virtual_nodes",
       .field = &Config::virtual_nodes,
       .kind = Kind::kNodes,
       .help = "sizes of consecutive nodes that hosts are split into, "
               "for tests; empty: every host is a node"},
      {.name = "malloc",
       .field = &Config::malloc,
       .kind = Kind::kChoice,
       .choices = "keep, tune",
       .same_on_all_ranks = false,
       .help =
           "what init() does about memory that is freed: tune, malloc keeps "
           "it for the next step; keep, malloc stays as it is"},
      {.name = "check",
       .field = &Config::check,
       .kind = Kind::kChoice,
       .choices = "off, start, periodic, every",
       .help = "when a DistributedOptimizer compares the parameters of "
               "its ranks: off, start, periodic or every"},
      {.name = "nonfinite_gradients",
       .field = &Config::nonfinite_gradients,
       .kind = Kind::kChoice,
       .choices = "off, warn, error, skip",
       .help = "what becomes of a gradient with NaN or infinity: off, "
               "warn, error or skip"},
  }};
  return *options;
}

std::string VariableName(const Option& option) {
  return absl::StrCat(kPrefix, absl::AsciiStrToUpper(option.name));
}

std::string Text(const Option& option, const Config& config) {
  return std::visit(
      [&](auto field) -> std::string {
        const auto& value = config.*field;
        using Value = std::decay_t<decltype(value)>;
        if constexpr (std::is_same_v<Value, bool>) {
          return value ? "true" : "false";
        } else if constexpr (std::is_same_v<Value, double>) {
          return absl::StrFormat("%.17g", value);
        } else {
          return absl::StrCat(value);
        }
      },
      option.field);
}

absl::Status CheckRange(const Option& option, int64_t value) {
  if (value >= option.minimum && value <= option.maximum) {
    return absl::OkStatus();
  }
  if (option.maximum == std::numeric_limits<int64_t>::max()) {
    return absl::InvalidArgumentError(
        absl::StrCat(value, " is less than ", option.minimum));
  }
  return absl::InvalidArgumentError(absl::StrCat(
      value, " is not from ", option.minimum, " to ", option.maximum));
}

absl::Status CheckChoice(const Option& option, const std::string& value) {
  for (const absl::string_view choice : absl::StrSplit(option.choices, ", ")) {
    if (choice == value) return absl::OkStatus();
  }
  return absl::InvalidArgumentError(
      absl::StrCat("'", value, "' is none of ", option.choices));
}

absl::Status CheckCpu(const std::string& value) {
  if (value == "auto" || value == "none") return absl::OkStatus();
  if (base::ParseInteger(value, 0, kMaxCpu).ok()) return absl::OkStatus();
  return absl::InvalidArgumentError(absl::StrCat(
      "'", value, "' is none of auto, none and the number of a CPU"));
}

absl::Status CheckValue(const Option& option, const Config& config) {
  switch (option.kind) {
    case Kind::kBytes:
    case Kind::kInteger:
      return CheckRange(option,
                        config.*std::get<int64_t Config::*>(option.field));
    case Kind::kSeconds:
      return base::ParseSeconds(Text(option, config)).status();
    case Kind::kChoice:
      return CheckChoice(option,
                         config.*std::get<std::string Config::*>(option.field));
    case Kind::kCpu:
      return CheckCpu(config.*std::get<std::string Config::*>(option.field));
    case Kind::kSteps:
      return ParseSteps(config.*std::get<std::string Config::*>(option.field))
          .status();
    case Kind::kNodes:
      return ParseVirtualNodes(config.*
                               std::get<std::string Config::*>(option.field))
          .status();
    case Kind::kSwitch:
    case Kind::kPath:
      return absl::OkStatus();
  }
  return absl::OkStatus();
}

// Parses `text` into the option's field. Errors say what is accepted.
absl::Status Assign(const Option& option, const std::string& text,
                    Config& config) {
  switch (option.kind) {
    case Kind::kBytes: {
      HVDLITE_ASSIGN_OR_RETURN(const int64_t value, base::ParseBytes(text));
      HVDLITE_RETURN_IF_ERROR(CheckRange(option, value));
      config.*std::get<int64_t Config::*>(option.field) = value;
      break;
    }
    case Kind::kInteger: {
      HVDLITE_ASSIGN_OR_RETURN(
          const int64_t value,
          base::ParseInteger(text, option.minimum, option.maximum));
      config.*std::get<int64_t Config::*>(option.field) = value;
      break;
    }
    case Kind::kSeconds: {
      HVDLITE_ASSIGN_OR_RETURN(const double value, base::ParseSeconds(text));
      config.*std::get<double Config::*>(option.field) = value;
      break;
    }
    case Kind::kSwitch: {
      HVDLITE_ASSIGN_OR_RETURN(const bool value, base::ParseBool(text));
      config.*std::get<bool Config::*>(option.field) = value;
      break;
    }
    case Kind::kChoice: {
      const std::string value = absl::AsciiStrToLower(text);
      HVDLITE_RETURN_IF_ERROR(CheckChoice(option, value));
      config.*std::get<std::string Config::*>(option.field) = value;
      break;
    }
    case Kind::kCpu: {
      const std::string value = absl::AsciiStrToLower(text);
      HVDLITE_RETURN_IF_ERROR(CheckCpu(value));
      config.*std::get<std::string Config::*>(option.field) = value;
      break;
    }
    case Kind::kSteps:
    case Kind::kNodes:
    case Kind::kPath:
      config.*std::get<std::string Config::*>(option.field) = text;
      return CheckValue(option, config);
  }
  return absl::OkStatus();
}

std::string Accepted(const Option& option) {
  switch (option.kind) {
    case Kind::kBytes:
      return "bytes, such as 1048576 or 64M";
    case Kind::kInteger:
      return absl::StrCat(option.minimum, " to ", option.maximum);
    case Kind::kSeconds:
      return "seconds";
    case Kind::kSwitch:
      return "0 or 1";
    case Kind::kChoice:
      return option.choices;
    case Kind::kCpu:
      return "auto, none, or the number of a CPU";
    case Kind::kSteps:
      return "steps, such as 100-110, 100- or 100";
    case Kind::kNodes:
      return "numbers of ranks, such as 2,1";
    case Kind::kPath:
      return "text";
  }
  return "";
}

// What to say about variables that look like ours and are not.
std::vector<std::string> UnknownVariables(
    const base::Environment& environment) {
  std::vector<std::string> known = {kStrict,
                                    base::kEndNoteVariable,
                                    base::kStepReportVariable,
                                    base::kCommitStoreVariable,
                                    base::kRestartsVariable,
                                    base::kJobStartVariable,
                                    base::kMinRanksVariable,
                                    base::kTerminalVariable};
  for (const Option& option : Options()) known.push_back(VariableName(option));
  std::vector<std::string> complaints;
  for (const std::string& name : environment.names()) {
    // HVDLITE_UCX_TLS and the like are UCX's, for the control channel alone.
    if (!absl::StartsWith(name, kPrefix) ||
        absl::StartsWith(name, absl::StrCat(kPrefix, "UCX_")) ||
        absl::c_linear_search(known, name)) {
      continue;
    }
    const std::string nearest = base::NearestName(name, known);
    complaints.push_back(absl::StrCat(
        "the environment variable ", name, " is not known",
        nearest.empty() ? "" : absl::StrCat("; did you mean ", nearest, "?")));
  }
  return complaints;
}

}  // namespace

absl::StatusOr<Config> LoadConfig(const base::Environment& environment) {
  Config config;
  for (const Option& option : Options()) {
    const std::string variable = VariableName(option);
    const std::optional<std::string> text = environment.get(variable);
    if (!text.has_value()) continue;
    if (absl::Status status = Assign(option, *text, config); !status.ok()) {
      return absl::InvalidArgumentError(absl::StrCat(
          "the environment variable ", variable, "=", *text,
          " cannot be used: ", status.message(), " (", option.help, ")"));
    }
    config.values_from_environment[option.name] = Text(option, config);
  }
  bool strict = false;
  if (const std::optional<std::string> text = environment.get(kStrict)) {
    absl::StatusOr<bool> value = base::ParseBool(*text);
    if (!value.ok()) {
      return absl::InvalidArgumentError(
          absl::StrCat("the environment variable ", kStrict, "=", *text,
                       " cannot be used: ", value.status().message()));
    }
    strict = *value;
  }
  config.warnings = UnknownVariables(environment);
  if (strict && !config.warnings.empty()) {
    return absl::InvalidArgumentError(
        absl::StrCat(absl::StrJoin(config.warnings, "; "),
                     " (an error because ", kStrict, " is on)"));
  }
  return config;
}

absl::StatusOr<std::pair<int64_t, int64_t>> ParseSteps(absl::string_view text) {
  std::pair<int64_t, int64_t> steps = {1, std::numeric_limits<int64_t>::max()};
  if (text.empty()) return steps;
  const std::vector<absl::string_view> ends = absl::StrSplit(text, '-');
  const bool is_range = ends.size() == 2;
  if (ends.size() > 2 || !absl::SimpleAtoi(ends.front(), &steps.first) ||
      (!(is_range && ends.back().empty()) &&
       !absl::SimpleAtoi(ends.back(), &steps.second)) ||
      steps.first < 1 || steps.second < steps.first) {
    return absl::InvalidArgumentError(absl::StrCat(
        "'", text, "' are no steps, such as 100-110, 100- or 100"));
  }
  return steps;
}

absl::Status ValidateConfig(const Config& config) {
  for (const Option& option : Options()) {
    if (absl::Status status = CheckValue(option, config); !status.ok()) {
      return absl::InvalidArgumentError(absl::StrCat(
          "hvdlite::Config::", option.name,
          " cannot be used: ", status.message(), " (", option.help, ")"));
    }
  }
  return absl::OkStatus();
}

Config WithAbsolutePaths(Config config) {
  for (const Option& option : Options()) {
    if (option.kind != Kind::kPath) continue;
    std::string& path = config.*std::get<std::string Config::*>(option.field);
    const auto read = config.values_from_environment.find(option.name);
    const bool was_read =
        read != config.values_from_environment.end() && read->second == path;
    path = base::AbsolutePath(path);
    if (was_read) read->second = path;
  }
  return config;
}

absl::StatusOr<std::vector<int>> ParseVirtualNodes(absl::string_view sizes) {
  std::vector<int> node_sizes;
  if (sizes.empty()) return node_sizes;
  for (const absl::string_view word : absl::StrSplit(sizes, ',')) {
    int node_size = 0;
    if (!absl::SimpleAtoi(word, &node_size) || node_size < 1) {
      return absl::InvalidArgumentError(
          absl::StrCat("virtual nodes '", sizes, "': '", word,
                       "' is no number of ranks; sizes of nodes are expected, "
                       "such as 2,1"));
    }
    node_sizes.push_back(node_size);
  }
  return node_sizes;
}

std::vector<ConfigValue> ConfigValues(const Config& config) {
  const Config defaults;
  std::vector<ConfigValue> values;
  for (const Option& option : Options()) {
    ConfigValue value{.name = option.name,
                      .text = Text(option, config),
                      .source = "program",
                      .same_on_all_ranks = option.same_on_all_ranks,
                      .to_agree_on = ""};
    value.to_agree_on =
        option.kind == Kind::kPath
            ? std::filesystem::path(value.text).filename().string()
            : value.text;
    const auto read = config.values_from_environment.find(option.name);
    if (read != config.values_from_environment.end()) {
      if (read->second == value.text) value.source = VariableName(option);
    } else if (value.text == Text(option, defaults)) {
      value.source = "default";
    }
    values.push_back(std::move(value));
  }
  return values;
}

std::vector<ConfigOption> ConfigOptions() {
  const Config defaults;
  std::vector<ConfigOption> options;
  for (const Option& option : Options()) {
    options.push_back({.name = option.name,
                       .variable = VariableName(option),
                       .help = option.help,
                       .accepted = Accepted(option),
                       .fallback = Text(option, defaults)});
  }
  return options;
}

std::string DescribeConfig(const Config& config) {
  std::string lines;
  for (const ConfigValue& value : ConfigValues(config)) {
    absl::StrAppend(
        &lines,
        absl::StrFormat("%-26s %-12s %s\n", value.name,
                        value.text.empty() ? "''" : value.text, value.source));
  }
  return lines;
}

}  // namespace hvdlite
