// A comparison of runs as text and as JSON.
#pragma once

#include <filesystem>
#include <string>

#include "trainers/benchmark/run_comparison.h"

namespace hvdlite::trainers {

// A line per benchmark: target, result and sd in items a second, sd% in
// percent and diff as a share of the target. Without targets their two columns
// are left out. What is missing and the verdict follow.
std::string ComparisonText(const Comparison& comparison);

// Writes the same as an object; what there is not, is null. Throws InputError
// that names the file if it cannot be written.
void WriteComparisonJson(const std::filesystem::path& file,
                         const Comparison& comparison);

}  // namespace hvdlite::trainers
