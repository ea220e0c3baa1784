// Judges the wall clocks of the hosts.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "absl/types/span.h"
#include "tools/doctor/finding.h"

namespace hvdlite::doctor {

// `offset_ns[r]`: what to add to rank r's clock to get rank 0's.
std::vector<Finding> JudgeClocks(absl::Span<const int64_t> offset_ns,
                                 absl::Span<const std::string> host_of_rank);

}  // namespace hvdlite::doctor
