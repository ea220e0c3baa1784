// Judges latency and bandwidth between every two ranks.
#pragma once

#include <string>
#include <vector>

#include "absl/types/span.h"
#include "tools/doctor/finding.h"

namespace hvdlite::doctor {

// What one rank measured with each of the others (0 for itself): small messages
// and large ones, in both directions at once.
struct LinkFacts {
  std::vector<double> latency_us;
  std::vector<double> gb_per_second;  // each way
};

// By rank.
std::vector<Finding> JudgeLinks(const std::vector<LinkFacts>& of_rank,
                                absl::Span<const std::string> host_of_rank);

}  // namespace hvdlite::doctor
