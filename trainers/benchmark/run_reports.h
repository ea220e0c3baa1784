// The reports of one run of the benchmarks.
#pragma once

#include <filesystem>
#include <string>
#include <vector>

namespace hvdlite::trainers {

// What runs are compared by, of a report of WriteBenchmarkReport.
struct RunReport {
  std::filesystem::path file;
  std::string name;  // of the benchmark
  std::string unique_id;
  std::string version;
  std::string failure;          // why the benchmark failed; empty if it did not
  double items_per_second = 0;  // train_item.avg, positive; 0 if it failed
};

// Those of one run.
using RunReports = std::vector<RunReport>;

// The reports in the files *.json of `folder` and the folders in it, file by
// file in the order of their names. Throws InputError that names the folder if it has none, and the
// file, the report and what was expected if one is malformed.
RunReports ReadRunReports(const std::filesystem::path& folder);

}  // namespace hvdlite::trainers
