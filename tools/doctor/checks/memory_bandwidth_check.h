// Judges the memory bandwidth that ranks have while all use theirs.
#pragma once

#include <string>
#include <vector>

#include "absl/types/span.h"
#include "tools/doctor/finding.h"

namespace hvdlite::doctor {

// `gb_per_second[r]`: bytes that rank r read and wrote, copying.
std::vector<Finding> JudgeMemoryBandwidth(
    absl::Span<const double> gb_per_second,
    absl::Span<const std::string> host_of_rank);

}  // namespace hvdlite::doctor
