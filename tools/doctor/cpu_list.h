// Lists of CPUs as the kernel writes them.
#pragma once

#include <string>
#include <vector>

#include "absl/strings/string_view.h"

namespace hvdlite::doctor {

// "0-3,8" gives 0, 1, 2, 3, 8. What is no number is left out.
std::vector<int> ParseCpuList(absl::string_view text);

// The reverse; `cpus` ascending.
std::string FormatCpuList(const std::vector<int>& cpus);

// The CPUs that the calling thread may use.
std::vector<int> AllowedCpus();

}  // namespace hvdlite::doctor
