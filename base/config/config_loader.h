// Reads, checks and prints Config, without LibTorch.
#pragma once

#include <cstdint>
#include <string>
#include <utility>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/strings/string_view.h"
#include "base/environment.h"
#include "hvdlite/config.h"

namespace hvdlite {

// Config::from_env() for any environment. Paths stay as they are given.
// InvalidArgument names the variable, its value and what is accepted.
absl::StatusOr<Config> LoadConfig(const base::Environment& environment);

// Checks values that a program may have assigned. InvalidArgument names the
// option, its value and the accepted values.
absl::Status ValidateConfig(const Config& config);

// The same configuration with absolute paths.
Config WithAbsolutePaths(Config config);

// First and last step of Config::timeline_steps; all steps if `text` is empty.
// InvalidArgument.
absl::StatusOr<std::pair<int64_t, int64_t>> ParseSteps(absl::string_view text);

// Sizes of Config::virtual_nodes, such as "2,1"; empty if the text is empty.
// InvalidArgument.
absl::StatusOr<std::vector<int>> ParseVirtualNodes(absl::string_view sizes);

struct ConfigValue {
  std::string name;        // "chunk_bytes"
  std::string text;        // canonical: equal values have equal texts
  std::string source;      // "default", "HVDLITE_CHUNK_BYTES", "program"
  bool same_on_all_ranks;  // whether the ranks have to agree
  // The text that ranks compare. For a path it is the last component, since
  // ranks may have different working directories.
  std::string to_agree_on;
};

// All values, in a fixed order.
std::vector<ConfigValue> ConfigValues(const Config& config);

// An option as the command line of a tool needs it.
struct ConfigOption {
  std::string name;      // "chunk_bytes"
  std::string variable;  // "HVDLITE_CHUNK_BYTES"
  std::string help;
  std::string accepted;  // "bytes, such as 1048576 or 64M"
  std::string fallback;  // the default's text
};

// All options, in the order of ConfigValues().
std::vector<ConfigOption> ConfigOptions();

// Implements Config::describe().
std::string DescribeConfig(const Config& config);

}  // namespace hvdlite
