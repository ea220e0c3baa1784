// CPUs and lists of them as Linux writes them: "0-3,8".
#pragma once

#include <string>
#include <vector>

#include "absl/status/statusor.h"
#include "absl/strings/string_view.h"

namespace hvdlite::base {

// {0, 1, 2, 3, 8} -> "0-3,8". `numbers` in any order; an empty list is "".
std::string FormatCpuList(std::vector<int> numbers);

// The reverse, in ascending order. An error quotes what is no list.
absl::StatusOr<std::vector<int>> ParseCpuList(absl::string_view text);

// The CPUs that the calling thread may use, in ascending order.
std::vector<int> AllowedCpus();

}  // namespace hvdlite::base
