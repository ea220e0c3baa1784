#include "trainers/benchmark/comparison_output.h"

#include <algorithm>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_format.h"
#include "trainers/benchmark/json_file.h"

namespace hvdlite::trainers {
namespace {

using nlohmann::json;

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

std::string VerdictText(const Verdict& verdict) {
  std::string text =
      absl::StrFormat("%-24s | %10s | %s\n", "Statistic", "Value", "Verdict");
  text += StatisticLine("Benchmarks in all runs", "", verdict.complete);
  const std::string deviation =
      verdict.deviation_quantile_percent
          ? absl::StrFormat("%+.4f %%", *verdict.deviation_quantile_percent)
          : "none";
  text += StatisticLine("Deviation quantile (80%)", deviation,
                        verdict.deviation_passes());
  if (verdict.performance) {
    text += StatisticLine("Performance",
                          absl::StrFormat("%+.4f", *verdict.performance),
                          verdict.performance_passes());
  }
  return text + StatisticLine("All", "", verdict.passes());
}

json OrNull(const std::optional<double>& value) {
  return value ? json(*value) : json();
}

}  // namespace

std::string ComparisonText(const Comparison& comparison) {
  std::string text = Table(comparison) + "\n";
  for (const std::string& sentence : comparison.missing) {
    absl::StrAppend(&text, "Missing: ", sentence, "\n");
  }
  if (!comparison.missing.empty()) text += "\n";
  return text + VerdictText(Judge(comparison));
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
  const Verdict verdict = Judge(comparison);
  WriteJsonFile(file, {{"benchmarks", benchmarks},
                       {"missing", comparison.missing},
                       {"deviation_quantile_percent",
                        OrNull(verdict.deviation_quantile_percent)},
                       {"performance", OrNull(verdict.performance)},
                       {"passes", verdict.passes()}});
}

}  // namespace hvdlite::trainers
