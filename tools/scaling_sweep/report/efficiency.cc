#include "tools/scaling_sweep/report/efficiency.h"

#include <vector>

#include "absl/status/status.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_format.h"
#include "support/text_table.h"

namespace hvdlite::scaling_sweep {

double StrongEfficiency(double t1, double n, double tn) {
  return t1 / (n * tn);
}

double WeakEfficiency(double t1, double tn) { return t1 / tn; }

double EfficiencyOfSpeeds(Scaling scaling, double base_n, double base_speed,
                          double n, double speed) {
  if (scaling == STRONG) {
    return StrongEfficiency(1 / base_speed, n / base_n, 1 / speed);
  }
  // A step of n has n batches.
  return WeakEfficiency(base_n / base_speed, n / speed);
}

std::string EfficiencyLabel(Scaling scaling) {
  return scaling == STRONG ? "strong: T1/(N*TN)" : "weak: T1/TN";
}

std::string PerNodeNote(const std::string& items) {
  return absl::StrCat("An efficiency is also the ", items,
                      " processed at N nodes per node: what each of them does "
                      "in a second, as a "
                      "share of what one node does alone.");
}

absl::StatusOr<std::string> EpochEfficienciesText(
    const scale_sim::EpochTable& table) {
  if (table.nodes.front() != 1) {
    return absl::InvalidArgumentError(absl::StrCat(
        "the first of the table's nodes must be 1, which efficiencies refer "
        "to, but is ",
        table.nodes.front()));
  }
  std::vector<std::vector<std::string>> rows;
  for (const scale_sim::EpochColumn& column : table.columns) {
    const double t1 = column.epoch_seconds.front();
    for (size_t i = 0; i < table.nodes.size(); ++i) {
      const int n = table.nodes[i];
      const double tn = column.epoch_seconds[i];
      rows.push_back(
          {column.name, absl::StrCat(n), absl::StrFormat("%.5g", tn),
           absl::StrFormat("%.2f", t1 / tn),
           absl::StrFormat("%.2f %%", 100 * StrongEfficiency(t1, n, tn))});
    }
  }
  return absl::StrCat(
      table.source, "\n",
      support::TextTable(
          {"column", "nodes", "epoch s", "speed-up",
           absl::StrCat("efficiency (", EfficiencyLabel(STRONG), ")")},
          rows),
      support::Wrapped(PerNodeNote("images")));
}

}  // namespace hvdlite::scaling_sweep
