// Lists of CPUs and nodes as Linux writes them: "0-3,8".
#pragma once

#include <string>
#include <vector>

#include "absl/status/statusor.h"
#include "absl/strings/string_view.h"

namespace hvdlite::launch {

// {0, 1, 2, 3, 8} -> "0-3,8". `numbers` in any order; an empty list is "".
std::string FormatCpuList(std::vector<int> numbers);

// The reverse, in ascending order. An error quotes what is no list.
absl::StatusOr<std::vector<int>> ParseCpuList(absl::string_view text);

}  // namespace hvdlite::launch
