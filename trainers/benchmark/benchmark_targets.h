// Throughput that benchmarks are to reach.
#pragma once

#include <filesystem>
#include <map>
#include <string>

namespace hvdlite::trainers {

using BenchmarkTargets = std::map<std::string, double>;  // items a second

// From JSON such as {"resnet50": 12.5, "cart": 2000}. Throws InputError that
// names the file and what was expected.
BenchmarkTargets ReadBenchmarkTargets(const std::filesystem::path& file);

}  // namespace hvdlite::trainers
