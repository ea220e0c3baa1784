// Runs of the same benchmarks compared with each other and with targets, as
// mlbench-report of Mila's training benchmarks does (github.com/mila-iqia/
// training, milabench/report/report.py before December 2019).
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "trainers/benchmark/benchmark_targets.h"
#include "trainers/benchmark/run_reports.h"

namespace hvdlite::trainers {

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

struct Verdict {
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

Verdict Judge(const Comparison& comparison);

}  // namespace hvdlite::trainers
