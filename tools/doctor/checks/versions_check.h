// Judges software that differs between hosts.
#pragma once

#include <map>
#include <string>
#include <vector>

#include "absl/types/span.h"
#include "tools/doctor/finding.h"

namespace hvdlite::doctor {

// What a rank runs: "kernel", "MPI", "BLAS", "hvdlite", "C library",
// "processor" -> version.
using Versions = std::map<std::string, std::string>;

// By rank. What most ranks have is taken for right.
std::vector<Finding> JudgeVersions(const std::vector<Versions>& of_rank,
                                   absl::Span<const std::string> host_of_rank);

}  // namespace hvdlite::doctor
