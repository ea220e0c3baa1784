// Results as JSON.
#pragma once

#include <string>

#include "tools/hvdlite_bench/results.h"

namespace hvdlite::tools {

// Everything, all samples included; tools/bench_allreduce and bench_peers read
// it.
std::string ToJson(const Results& results);

// Throws std::runtime_error naming `path` if it cannot be written.
void WriteJson(const Results& results, const std::string& path);

}  // namespace hvdlite::tools
