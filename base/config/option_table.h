// The table of options: each option is defined here only.
#pragma once

#include <cstdint>
#include <limits>
#include <string>
#include <variant>

#include "absl/types/span.h"
#include "hvdlite/config.h"

namespace hvdlite {

// How the text of a value is parsed.
enum class OptionKind {
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

using OptionField = std::variant<int64_t Config::*, double Config::*,
                                 bool Config::*, std::string Config::*>;

// Maximum of Config::tree_arity.
inline constexpr int kMaxTreeArity = 31;

// The variable's name is made from `name`. config.h documents each option and
// its default. `help` is the first sentence of that comment; config_table_test
// compares them and generates the table of docs/configuration.md.
struct Option {
  const char* name;
  OptionField field;
  OptionKind kind;
  int64_t minimum = 0;  // for bytes and integers
  int64_t maximum = std::numeric_limits<int64_t>::max();
  const char* choices = "";  // for a choice, separated by ", "
  bool same_on_all_ranks = true;
  const char* help;
};

// All options, in the order of config.h.
absl::Span<const Option> Options();

}  // namespace hvdlite
