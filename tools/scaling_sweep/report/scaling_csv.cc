#include "tools/scaling_sweep/report/scaling_csv.h"

#include <optional>
#include <vector>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_format.h"
#include "absl/strings/str_join.h"
#include "tools/scaling_sweep/report/efficiency.h"
#include "tools/support/text_table.h"

namespace hvdlite::scaling_sweep {
namespace {

std::string Number(std::optional<double> value) {
  return value ? absl::StrFormat("%.9g", *value) : "";
}

std::vector<std::string> Cells(const ScalingTable& table, const Row& row) {
  const Configuration& configuration = row.configuration;
  std::vector<std::string> cells = {
      configuration.setting,
      configuration.mapping,
      absl::StrCat(configuration.nodes),
      absl::StrCat(configuration.ranks()),
      absl::StrJoin(row.threads, "-"),
      row.oversubscribed ? "yes" : "no",
      Number(row.items_per_second),
      row.interval ? Number(row.interval->low) : "",
      row.interval ? Number(row.interval->high) : "",
      Number(row.epoch_seconds),
      EfficiencyLabel(table.scaling),
      CountedName(table.counted),
      absl::StrCat(row.n),
      row.efficiency ? absl::StrCat(row.base_n) : "",
      Number(row.speed_up),
      Number(row.efficiency),
      row.shares ? Number(row.shares->negotiating) : "",
      row.shares ? Number(row.shares->communicating) : "",
      row.shares ? Number(row.shares->exposed) : "",
      absl::StrCat(row.samples.size()),
      absl::StrCat(row.failures)};
  return cells;
}

}  // namespace

std::string ScalingCsv(const ScalingTable& table) {
  std::vector<std::vector<std::string>> rows;
  for (const Row& row : table.rows) rows.push_back(Cells(table, row));
  return CsvTable({"setting",
                   "mapping",
                   "nodes",
                   "ranks",
                   "threads",
                   "oversubscribed",
                   "items_per_second_median",
                   "interval_low",
                   "interval_high",
                   "epoch_seconds",
                   "efficiency_kind",
                   "n_counts",
                   "n",
                   "base_n",
                   "speed_up",
                   "efficiency",
                   "negotiating",
                   "communicating",
                   "exposed",
                   "runs",
                   "failed"},
                  rows);
}

}  // namespace hvdlite::scaling_sweep
