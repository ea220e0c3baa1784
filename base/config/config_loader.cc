#include "base/config/config_loader.h"

#include <filesystem>
#include <limits>
#include <utility>

#include "absl/algorithm/container.h"
#include "absl/strings/ascii.h"
#include "absl/strings/match.h"
#include "absl/strings/numbers.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_format.h"
#include "absl/strings/str_join.h"
#include "absl/strings/str_split.h"
#include "base/commit_store.h"
#include "base/config/option_table.h"
#include "base/end_note.h"
#include "base/launcher_environment.h"
#include "base/status_macros.h"

namespace hvdlite {
namespace {

constexpr char kPrefix[] = "HVDLITE_";
constexpr char kStrict[] = "HVDLITE_STRICT";
constexpr int64_t kMaxCpu = 65535;

using Kind = OptionKind;

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
      absl::StrCat("'", value, "' is not one of ", option.choices));
}

absl::Status CheckCpu(const std::string& value) {
  if (value == "auto" || value == "none") return absl::OkStatus();
  if (base::ParseInteger(value, 0, kMaxCpu).ok()) return absl::OkStatus();
  return absl::InvalidArgumentError(
      absl::StrCat("'", value, "' is not auto, none or the number of a CPU"));
}

std::string& StringOf(const Option& option, Config& config) {
  return config.*std::get<std::string Config::*>(option.field);
}

absl::Status CheckValue(const Option& option, const Config& config) {
  const std::string text = Text(option, config);
  switch (option.kind) {
    case Kind::kBytes:
    case Kind::kInteger:
      return CheckRange(option,
                        config.*std::get<int64_t Config::*>(option.field));
    case Kind::kSeconds:
      return base::ParseSeconds(text).status();
    case Kind::kChoice:
      return CheckChoice(option, text);
    case Kind::kCpu:
      return CheckCpu(text);
    case Kind::kSteps:
      return ParseSteps(text).status();
    case Kind::kNodes:
      return ParseVirtualNodes(text).status();
    case Kind::kSwitch:
    case Kind::kPath:
      return absl::OkStatus();
  }
  return absl::OkStatus();
}

// Parses `text` into the option's field. Errors list the accepted values.
absl::Status Assign(const Option& option, const std::string& text,
                    Config& config) {
  switch (option.kind) {
    case Kind::kBytes: {
      HVDLITE_ASSIGN_OR_RETURN(
          config.*std::get<int64_t Config::*>(option.field),
          base::ParseBytes(text));
      break;
    }
    case Kind::kInteger: {
      HVDLITE_ASSIGN_OR_RETURN(
          config.*std::get<int64_t Config::*>(option.field),
          base::ParseInteger(text, option.minimum, option.maximum));
      break;
    }
    case Kind::kSeconds: {
      HVDLITE_ASSIGN_OR_RETURN(config.*std::get<double Config::*>(option.field),
                               base::ParseSeconds(text));
      break;
    }
    case Kind::kSwitch: {
      HVDLITE_ASSIGN_OR_RETURN(config.*std::get<bool Config::*>(option.field),
                               base::ParseBool(text));
      break;
    }
    case Kind::kChoice:
    case Kind::kCpu:
      StringOf(option, config) = absl::AsciiStrToLower(text);
      break;
    case Kind::kSteps:
    case Kind::kNodes:
    case Kind::kPath:
      StringOf(option, config) = text;
      break;
  }
  return CheckValue(option, config);
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

// Warnings about variables with hvdlite's prefix that hvdlite does not have.
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
    // HVDLITE_UCX_TLS and similar variables configure UCX, for the control
    // channel only.
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
        "'", text, "' is not a range of steps, such as 100-110, 100- or 100"));
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
    std::string& path = StringOf(option, config);
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
                       "' is not a number of ranks; sizes of nodes are "
                       "expected, such as 2,1"));
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
