#include "trainers/synthetic_report.h"

#include <hvdlite/hvdlite.h>

#include <filesystem>
#include <system_error>

#include "tools/support/output_file.h"
#include "trainers/agreement.h"
#include "trainers/benchmark/benchmark_report.h"

namespace hvdlite::trainers {
namespace {

constexpr char kVersion[] = "1";  // of what is measured

// Empty: no report.
std::filesystem::path ReportFile(const SyntheticFlags& flags) {
  const std::filesystem::path path = flags.report;
  if (path.empty() || path.extension() == ".json") return path;
  return path / (flags.task.model + ".json");
}

}  // namespace

void CheckReport(const SyntheticFlags& flags) {
  const std::filesystem::path file = ReportFile(flags);
  OnAllRanks("write the report", [&] {
    if (rank() != 0 || file.empty()) return;
    std::error_code ignored;  // the attempt to write tells
    std::filesystem::create_directories(file.parent_path(), ignored);
    RequireWritable(file);
  });
}

void SaveReport(const SyntheticFlags& flags, const BenchmarkRecorder& recorder,
                const std::optional<int64_t>& first_non_finite_batch) {
  BenchmarkReport report = ReportOf(recorder);
  report.name = flags.task.model;
  report.arch = flags.task.model;
  report.version = kVersion;
  report.host = ThisHost();
  report.arguments = ArgumentsOf(flags);
  report.first_non_finite_batch = first_non_finite_batch;
  const std::filesystem::path file = ReportFile(flags);
  OnAllRanks("save the report", [&] {
    if (rank() != 0 || file.empty()) return;
    // The status is known: it is that of first_non_finite_batch.
    static_cast<void>(WriteBenchmarkReport(file, report));
  });
}

}  // namespace hvdlite::trainers
