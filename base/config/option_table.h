// The table of options. It defines each option once.
#pragma once

#include <cstdint>
#include <limits>
#include <string>
#include <variant>

#include "absl/types/span.h"
#include "hvdlite/config.h"

namespace hvdlite {

// How the text of a value is read.
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

// The largest Config::tree_arity.
inline constexpr int kMaxTreeArity = 31;

// The variable's name follows from `name`. config.h explains the option and
// defines its default. `help` is the first sentence there: config_table_test
// compares them, and writes the table of docs/configuration.md.
struct Option {
  const char* name;
  OptionField field;
  OptionKind kind;
  int64_t minimum = 0;  // for kBytes and kInteger
  int64_t maximum = std::numeric_limits<int64_t>::max();
  const char* choices = "";  // for kChoice; separated by ", "
  bool same_on_all_ranks = true;
  const char* help;
};

// All options, in the order of config.h.
absl::Span<const Option> Options();

}  // namespace hvdlite
