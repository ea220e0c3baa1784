#include "trainers/benchmark/run_comparison.h"

#include <algorithm>
#include <cmath>
#include <map>
#include <numeric>
#include <stdexcept>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_format.h"
#include "support/input_error.h"
#include "support/statistics.h"
#include "trainers/benchmark/json_file.h"

namespace hvdlite::trainers {
namespace {

namespace fs = std::filesystem;
using nlohmann::json;

constexpr char kExpected[] = "a list of benchmark reports";

std::vector<fs::path> ListFiles(const fs::path& folder) {
  std::vector<fs::path> files;
  try {
    for (const fs::directory_entry& entry :
         fs::recursive_directory_iterator(folder)) {
      if (entry.path().extension() == ".json") files.push_back(entry.path());
    }
  } catch (const fs::filesystem_error& error) {
    throw support::InputError("cannot read the run's folder '" +
                              folder.string() + "': " + error.code().message());
  }
  if (files.empty()) {
    throw support::InputError("no *.json in '" + folder.string() +
                              "'; expected the reports of one run");
  }
  std::sort(files.begin(), files.end());
  return files;
}

// One report of a file, with errors that tell which.
class ReportReader {
 public:
  ReportReader(const fs::path& file, size_t index, const json& report)
      : where_("report " + std::to_string(index) + " of '" + file.string() +
               "'"),
        report_(report) {}

  std::string Text(const std::string& key) const {
    const auto value = report_.find(key);
    if (value == report_.end() || !value->is_string()) {
      throw support::InputError(where_ + " has no " + key +
                                "; expected a text");
    }
    return *value;
  }

  // Empty if the benchmark did not fail.
  std::string Failure() const {
    if (!report_.value("completed", json(true)).is_boolean()) {
      throw support::InputError(
          where_ + " has completed = " + report_["completed"].dump() +
          "; expected true or false");
    }
    if (!report_.value("completed", true)) {
      return report_.contains("failure") ? Text("failure")
                                         : "it did not complete";
    }
    const json losses = report_.value("batch_loss", json::array());
    const bool finite = std::all_of(losses.begin(), losses.end(),
                                    [](const json& l) { return !l.is_null(); });
    return finite ? "" : "a loss is not finite";
  }

  double ItemsPerSecond() const {
    static const json::json_pointer avg("/train_item/avg");
    const json found =
        report_.contains(avg) ? report_.at(avg) : json("nothing");
    if (!found.is_number() || found <= 0) {
      throw support::InputError(
          where_ + " has " + found.dump() +
          " as train_item.avg; expected a positive number of "
          "items a second");
    }
    return found;
  }

 private:
  const std::string where_;
  const json& report_;
};

RunReport ReadReport(const fs::path& file, size_t index, const json& value) {
  if (!value.is_object()) {
    throw support::InputError("report " + std::to_string(index) + " of '" +
                              file.string() + "' is JSON of type " +
                              value.type_name() + "; expected an object");
  }
  const ReportReader reader(file, index, value);
  RunReport report = {.file = file,
                      .name = reader.Text("name"),
                      .unique_id = reader.Text("unique_id"),
                      .version = reader.Text("version"),
                      .failure = reader.Failure()};
  if (report.failure.empty()) report.items_per_second = reader.ItemsPerSecond();
  return report;
}

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
  throw support::InputError(
      "the report of " + name + " in '" + report.file.string() + "' has " +
      field + " " + found + "; expected " + expected + " as in '" +
      first.file.string() +
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
    throw support::InputError("the targets have none for " + name +
                              ", which '" + benchmark.first->file.string() +
                              "' reports; expected one for each benchmark");
  }
  return target->second;
}

// Of each run that did not fail.
std::vector<double> RunValues(const Benchmark& benchmark) {
  std::vector<double> values;
  for (const auto& [run, speeds] : benchmark.items_per_second) {
    if (!benchmark.failures.contains(run)) {
      values.push_back(support::Mean(speeds));
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

bool HasTargets(const Comparison& comparison) {
  return std::any_of(comparison.rows.begin(), comparison.rows.end(),
                     [](const ComparisonRow& row) { return row.target; });
}

std::string Table(const Comparison& comparison) {
  const bool targets = HasTargets(comparison);
  size_t width = std::string("bench").size();
  for (const ComparisonRow& row : comparison.rows) {
    width = std::max(width, row.name.size());
  }
  std::string table = absl::StrFormat("%-*s", width, "bench");
  if (targets) absl::StrAppendFormat(&table, "  %12s", "target");
  absl::StrAppendFormat(&table, "  %14s  %12s  %8s", "result", "sd", "sd%");
  if (targets) absl::StrAppendFormat(&table, "  %9s", "diff");
  table += "\n";
  for (const ComparisonRow& row : comparison.rows) {
    absl::StrAppendFormat(&table, "%-*s", width, row.name);
    if (targets) absl::StrAppendFormat(&table, "  %12.2f", *row.target);
    absl::StrAppendFormat(&table, "  %14.6f  %12.6f  %8.4f", row.result, row.sd,
                          row.sd_percent());
    if (targets) absl::StrAppendFormat(&table, "  %9.6f", *row.diff());
    table += "\n";
  }
  return table;
}

std::string StatisticLine(const std::string& name, const std::string& value,
                          bool passes) {
  return absl::StrFormat("%-24s | %10s | %s\n", name, value,
                         passes ? "pass" : "FAIL");
}

std::string AcceptanceText(const Acceptance& acceptance) {
  std::string text =
      absl::StrFormat("%-24s | %10s | %s\n", "Statistic", "Value", "Verdict");
  text += StatisticLine("Benchmarks in all runs", "", acceptance.complete);
  const std::string deviation =
      acceptance.deviation_quantile_percent
          ? absl::StrFormat("%+.4f %%", *acceptance.deviation_quantile_percent)
          : "none";
  text += StatisticLine("Deviation quantile (80%)", deviation,
                        acceptance.deviation_passes());
  if (acceptance.performance) {
    text += StatisticLine("Performance",
                          absl::StrFormat("%+.4f", *acceptance.performance),
                          acceptance.performance_passes());
  }
  return text + StatisticLine("All", "", acceptance.passes());
}

json OrNull(const std::optional<double>& value) {
  return value ? json(*value) : json();
}

}  // namespace

BenchmarkTargets ReadBenchmarkTargets(const std::filesystem::path& file) {
  const std::string expected =
      "an object of items a second by benchmark, as {\"resnet50\": 12.5}";
  const nlohmann::json json = ReadJsonFile(file, expected);
  if (!json.is_object()) {
    throw support::InputError("'" + file.string() + "' holds JSON of type " +
                              json.type_name() + "; expected " + expected);
  }
  BenchmarkTargets targets;
  for (const auto& [name, value] : json.items()) {
    if (!value.is_number() || value <= 0) {
      throw support::InputError(
          "the target of " + name + " in '" + file.string() + "' is " +
          value.dump() + "; expected a positive number of items a second");
    }
    targets[name] = value;
  }
  return targets;
}

RunReports ReadRunReports(const fs::path& folder) {
  RunReports reports;
  for (const fs::path& file : ListFiles(folder)) {
    const json list = ReadJsonFile(file, kExpected);
    if (!list.is_array()) {
      throw support::InputError("'" + file.string() + "' holds JSON of type " +
                                list.type_name() + "; expected " + kExpected);
    }
    for (size_t i = 0; i < list.size(); ++i) {
      reports.push_back(ReadReport(file, i, list[i]));
    }
  }
  return reports;
}

std::optional<double> ComparisonRow::diff() const {
  if (!target) return std::nullopt;
  return result / *target - 1;
}

ComparisonRow MakeRow(const std::string& name,
                      const std::vector<double>& items_per_second,
                      std::optional<double> target) {
  const support::Summary runs = support::Summarise(items_per_second);
  if (runs.samples < kMinRuns) throw std::invalid_argument("too few runs");
  const double sum =
      std::accumulate(items_per_second.begin(), items_per_second.end(), 0.0);
  return {.name = name,
          .target = target,
          .result = (sum - runs.max - runs.min) /
                    static_cast<double>(runs.samples - 2),
          .sd = support::SampleStandardDeviation(items_per_second)};
}

Comparison Compare(const std::vector<RunReports>& runs,
                   const std::optional<BenchmarkTargets>& targets) {
  if (std::ssize(runs) < kMinRuns) {
    throw support::InputError(
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

Acceptance Judge(const Comparison& comparison) {
  std::vector<double> deviations;
  std::vector<double> diffs;
  for (const ComparisonRow& row : comparison.rows) {
    deviations.push_back(row.sd_percent());
    if (row.target) diffs.push_back(*row.diff());
  }
  Acceptance acceptance;
  acceptance.complete = comparison.missing.empty();
  if (!deviations.empty()) {
    acceptance.deviation_quantile_percent =
        support::Quantile(deviations, kDeviationQuantile);
  }
  if (!diffs.empty()) acceptance.performance = support::Mean(diffs);
  return acceptance;
}

std::string ComparisonText(const Comparison& comparison) {
  std::string text = Table(comparison) + "\n";
  for (const std::string& sentence : comparison.missing) {
    absl::StrAppend(&text, "Missing: ", sentence, "\n");
  }
  if (!comparison.missing.empty()) text += "\n";
  return text + AcceptanceText(Judge(comparison));
}

void WriteComparisonJson(const std::filesystem::path& file,
                         const Comparison& comparison) {
  json benchmarks = json::array();
  for (const ComparisonRow& row : comparison.rows) {
    benchmarks.push_back({{"name", row.name},
                          {"target", OrNull(row.target)},
                          {"result", row.result},
                          {"sd", row.sd},
                          {"sd_percent", row.sd_percent()},
                          {"diff", OrNull(row.diff())}});
  }
  const Acceptance acceptance = Judge(comparison);
  WriteJsonFile(file, {{"benchmarks", benchmarks},
                       {"missing", comparison.missing},
                       {"deviation_quantile_percent",
                        OrNull(acceptance.deviation_quantile_percent)},
                       {"performance", OrNull(acceptance.performance)},
                       {"passes", acceptance.passes()}});
}

}  // namespace hvdlite::trainers
