#include "trainers/benchmark/run_comparison.h"

#include <map>
#include <numeric>
#include <stdexcept>

#include "tools/support/input_error.h"
#include "tools/support/sample_statistics.h"
#include "tools/support/statistics.h"

namespace hvdlite::trainers {
namespace {

constexpr double kDeviationQuantile = 0.8;

// What the runs say about one benchmark.
struct Benchmark {
  const RunReport* first = nullptr;
  // Of the reports that did not fail, by run.
  std::map<size_t, std::vector<double>> items_per_second;
  std::map<size_t, std::string> failures;  // by run
};

void RequireSame(const std::string& field, const std::string& name,
                 const RunReport& report, const std::string& found,
                 const RunReport& first, const std::string& expected) {
  if (found == expected) return;
  throw InputError("the report of " + name + " in '" + report.file.string() +
                   "' has " + field + " " + found + "; expected " + expected +
                   " as in '" + first.file.string() +
                   "': only runs of the same program with the same arguments "
                   "compare");
}

void AddReport(const RunReport& report, size_t run, Benchmark& benchmark) {
  if (benchmark.first == nullptr) benchmark.first = &report;
  const RunReport& first = *benchmark.first;
  RequireSame("unique_id", report.name, report, report.unique_id, first,
              first.unique_id);
  RequireSame("version", report.name, report, report.version, first,
              first.version);
  if (report.failure.empty()) {
    benchmark.items_per_second[run].push_back(report.items_per_second);
  } else {
    benchmark.failures[run] = report.failure;
  }
}

std::map<std::string, Benchmark> GroupByName(
    const std::vector<RunReports>& runs) {
  std::map<std::string, Benchmark> benchmarks;
  for (size_t run = 0; run < runs.size(); ++run) {
    for (const RunReport& report : runs[run]) {
      AddReport(report, run, benchmarks[report.name]);
    }
  }
  return benchmarks;
}

std::optional<double> TargetOf(const std::string& name,
                               const Benchmark& benchmark,
                               const std::optional<BenchmarkTargets>& targets) {
  if (!targets) return std::nullopt;
  const auto target = targets->find(name);
  if (target == targets->end()) {
    throw InputError("the targets have none for " + name + ", which '" +
                     benchmark.first->file.string() +
                     "' reports; expected one for each benchmark");
  }
  return target->second;
}

// Of each run that did not fail.
std::vector<double> RunValues(const Benchmark& benchmark) {
  std::vector<double> values;
  for (const auto& [run, speeds] : benchmark.items_per_second) {
    if (!benchmark.failures.contains(run)) {
      values.push_back(StatisticsOf(speeds).avg);
    }
  }
  return values;
}

void NoteMissing(const std::string& name, const Benchmark& benchmark,
                 size_t runs, std::vector<std::string>& missing) {
  for (size_t run = 0; run < runs; ++run) {
    const std::string where = "run " + std::to_string(run + 1);
    const auto failure = benchmark.failures.find(run);
    if (failure != benchmark.failures.end()) {
      missing.push_back(name + " failed in " + where + ": " + failure->second);
    } else if (!benchmark.items_per_second.contains(run)) {
      missing.push_back(name + " is missing in " + where);
    }
  }
}

}  // namespace

std::optional<double> ComparisonRow::diff() const {
  if (!target) return std::nullopt;
  return result / *target - 1;
}

ComparisonRow MakeRow(const std::string& name,
                      const std::vector<double>& items_per_second,
                      std::optional<double> target) {
  const SampleStatistics runs = StatisticsOf(items_per_second);
  if (runs.count < kMinRuns) throw std::invalid_argument("too few runs");
  const double sum =
      std::accumulate(items_per_second.begin(), items_per_second.end(), 0.0);
  return {.name = name,
          .target = target,
          .result =
              (sum - runs.max - runs.min) / static_cast<double>(runs.count - 2),
          .sd = SampleStandardDeviation(items_per_second)};
}

Comparison Compare(const std::vector<RunReports>& runs,
                   const std::optional<BenchmarkTargets>& targets) {
  if (std::ssize(runs) < kMinRuns) {
    throw InputError(
        std::to_string(runs.size()) + " runs given; expected at least " +
        std::to_string(kMinRuns) + ", as the best and the worst do not count");
  }
  const std::map<std::string, Benchmark> benchmarks = GroupByName(runs);
  Comparison comparison;
  for (const auto& [name, benchmark] : benchmarks) {
    NoteMissing(name, benchmark, runs.size(), comparison.missing);
    const std::optional<double> target = TargetOf(name, benchmark, targets);
    const std::vector<double> values = RunValues(benchmark);
    if (std::ssize(values) < kMinRuns) {
      comparison.missing.push_back(
          name + " has no result: " + std::to_string(values.size()) +
          " of its runs succeeded, " + std::to_string(kMinRuns) +
          " are needed");
    } else {
      comparison.rows.push_back(MakeRow(name, values, target));
    }
  }
  for (const auto& [name, target] : targets.value_or(BenchmarkTargets{})) {
    if (!benchmarks.contains(name)) {
      comparison.missing.push_back(name + " has a target, but no run has it");
    }
  }
  return comparison;
}

Verdict Judge(const Comparison& comparison) {
  std::vector<double> deviations;
  std::vector<double> diffs;
  for (const ComparisonRow& row : comparison.rows) {
    deviations.push_back(row.sd_percent());
    if (row.target) diffs.push_back(*row.diff());
  }
  Verdict verdict;
  verdict.complete = comparison.missing.empty();
  if (!deviations.empty()) {
    verdict.deviation_quantile_percent =
        base::Quantile(deviations, kDeviationQuantile);
  }
  if (!diffs.empty()) verdict.performance = StatisticsOf(diffs).avg;
  return verdict;
}

}  // namespace hvdlite::trainers
