// Runs of the same benchmarks compared with each other and with targets, as
// mlbench-report of Mila's training benchmarks does (github.com/mila-iqia/
// training, milabench/report/report.py before December 2019).
#pragma once

#include <cstdint>
#include <filesystem>
#include <map>
#include <optional>
#include <string>
#include <vector>

namespace hvdlite::trainers {

// Throughput that benchmarks are to reach, items a second.
using BenchmarkTargets = std::map<std::string, double>;

// From JSON such as {"resnet50": 12.5, "cart": 2000}. Throws InputError that
// names the file and what was expected.
BenchmarkTargets ReadBenchmarkTargets(const std::filesystem::path& file);

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
// file in the order of their names. Throws InputError that names the folder if
// it has none, and the file, the report and what was expected if one is
// malformed.
RunReports ReadRunReports(const std::filesystem::path& folder);

// With fewer, too little is left without the best and the worst run.
inline constexpr int64_t kMinRuns = 4;

// One benchmark.
struct ComparisonRow {
  std::string name;
  std::optional<double> target;  // items a second
  double result = 0;             // items a second: the mean of the runs less
                                 // the best and the worst of them
  double sd = 0;                 // items a second: sample standard deviation of
                                 // all runs

  double sd_percent() const { return 100 * sd / result; }
  // As a share of the target: 0.1 is 10 % faster.
  std::optional<double> diff() const;
};

// `items_per_second` has one value of each run, at least kMinRuns
// (std::invalid_argument).
ComparisonRow MakeRow(const std::string& name,
                      const std::vector<double>& items_per_second,
                      std::optional<double> target);

struct Comparison {
  std::vector<ComparisonRow> rows;  // in the order of their names
  // Failed runs, runs without a benchmark that others have, and benchmarks
  // without a row: a sentence each.
  std::vector<std::string> missing;
};

// Compares at least kMinRuns runs (InputError if there are fewer). A benchmark
// has a row if kMinRuns of its runs succeeded; if a run has several reports of
// it, as of several devices, their mean counts. With targets, each benchmark
// must have one. Throws InputError that names the file if reports of the same
// benchmark have different unique_ids or versions, or if the target is missing.
Comparison Compare(const std::vector<RunReports>& runs,
                   const std::optional<BenchmarkTargets>& targets);

inline constexpr double kMaxDeviationPercent = 5;  // exclusive

struct Acceptance {
  bool complete = false;  // nothing is missing
  // 80 % quantile of the rows' sd_percent; none without rows.
  std::optional<double> deviation_quantile_percent;
  // Mean of the rows' diffs, a share as they are; none without targets.
  std::optional<double> performance;

  bool deviation_passes() const {
    return deviation_quantile_percent &&
           *deviation_quantile_percent < kMaxDeviationPercent;
  }
  bool performance_passes() const { return !performance || *performance >= 0; }
  bool passes() const {
    return complete && deviation_passes() && performance_passes();
  }
};

Acceptance Judge(const Comparison& comparison);

// A line per benchmark: target, result and sd in items a second, sd% in
// percent and diff as a share of the target. Without targets their two columns
// are left out. What is missing and the acceptance follow.
std::string ComparisonText(const Comparison& comparison);

// Writes the same as an object; what there is not, is null. Throws InputError
// that names the file if it cannot be written.
void WriteComparisonJson(const std::filesystem::path& file,
                         const Comparison& comparison);

}  // namespace hvdlite::trainers
