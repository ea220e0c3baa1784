#include "tools/scaling_sweep/report/table_cells.h"

#include <algorithm>
#include <map>
#include <optional>
#include <utility>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_format.h"
#include "absl/strings/str_join.h"

namespace hvdlite::scaling_sweep {
namespace {

constexpr char kUnknown[] = "-";
constexpr char kOversubscribed[] = "oversubscribed";

std::string Number(std::optional<double> value, const char* unit = "") {
  return value ? absl::StrFormat("%.4g%s", *value, unit) : kUnknown;
}

std::string Percent(std::optional<double> share) {
  return share ? absl::StrFormat("%.1f %%", *share * 100) : kUnknown;
}

std::string IntervalText(const std::optional<Interval>& interval) {
  if (!interval) return kUnknown;
  return absl::StrFormat("%.4g..%.4g", interval->low, interval->high);
}

std::string OrUnknown(const std::string& text) {
  return text.empty() ? kUnknown : text;
}

// "auto": the launcher's choice, which is not known.
std::string Threads(const Row& row) {
  return row.threads.empty() ? "auto" : absl::StrJoin(row.threads, " or ");
}

// "h (2 cores): 3 runs" of each.
std::string MachinesOf(const ScalingTable& table) {
  std::map<std::pair<std::string, int>, int> runs;
  for (const Row& row : table.rows) {
    for (const Sample& sample : row.samples) {
      ++runs[{sample.host, sample.cores}];
    }
  }
  if (runs.size() < 2) return "";
  return absl::StrJoin(runs, "; ", [](std::string* out, const auto& entry) {
    const auto& [machine, count] = entry;
    absl::StrAppend(out, machine.first, " (", machine.second,
                    machine.second == 1 ? " core): " : " cores): ", count,
                    count == 1 ? " run" : " runs");
  });
}

// Of the first row that has a result.
std::optional<double> FirstSpeed(const ScalingTable& table) {
  for (const Row& row : table.rows) {
    if (row.items_per_second) return row.items_per_second;
  }
  return std::nullopt;
}

std::string RatioToFirst(const ScalingTable& table, const Row& row) {
  const std::optional<double> first = FirstSpeed(table);
  if (!first || !row.items_per_second) return kUnknown;
  return absl::StrFormat("%.3g", *row.items_per_second / *first);
}

std::string SpeedUp(const Row& row) {
  if (row.oversubscribed) return kOversubscribed;
  return row.speed_up ? absl::StrFormat("%.3g", *row.speed_up) : kUnknown;
}

std::string Efficiency(const Row& row) {
  if (row.oversubscribed) return kOversubscribed;
  std::string text = Percent(row.efficiency);
  if (row.efficiency && row.base_n != 1) {
    absl::StrAppend(&text, " of N=", row.base_n);
  }
  return text;
}

}  // namespace

std::vector<std::string> ColumnTitles(const ScalingTable& table) {
  return {"setting",
          "mapping",
          "nodes",
          "ranks",
          "threads",
          "items/s (median)",
          "95 % interval",
          "x first",
          "epoch s",
          "speed-up",
          absl::StrCat("efficiency (", table.EfficiencyTitle(), ")"),
          "negotiating",
          "communicating",
          "exposed",
          "runs",
          "failed"};
}

std::vector<std::string> CellsOf(const ScalingTable& table, const Row& row) {
  const Configuration& configuration = row.configuration;
  const auto share = [&](auto member) -> std::optional<double> {
    if (!row.shares) return std::nullopt;
    return member(*row.shares);
  };
  using Shares = timeline::TimeShares;
  return {OrUnknown(configuration.setting),
          OrUnknown(configuration.mapping),
          absl::StrCat(configuration.nodes),
          absl::StrCat(configuration.ranks()),
          Threads(row),
          Number(row.items_per_second),
          IntervalText(row.interval),
          RatioToFirst(table, row),
          Number(row.epoch_seconds),
          SpeedUp(row),
          Efficiency(row),
          Percent(share([](const Shares& s) { return s.negotiating; })),
          Percent(share([](const Shares& s) { return s.communicating; })),
          Percent(share([](const Shares& s) -> std::optional<double> {
            return s.exposed;
          })),
          absl::StrCat(row.samples.size()),
          absl::StrCat(row.failures)};
}

std::vector<std::string> Notes(const ScalingTable& table) {
  std::vector<std::string> notes = {
      absl::StrCat(
          "Efficiency is ", table.EfficiencyTitle(),
          ", against the smallest N of the same setting, mapping and threads."),
      "Items/s are those of all ranks together; the interval is the median's, "
      "by bootstrap, and of few runs no wider than they are apart.",
      "Shares are of the traced time: negotiating while no batch runs (free "
      "while the rank computes on), communicating, and exposed, when the "
      "application waited for gradients."};
  const auto oversubscribed =
      std::count_if(table.rows.begin(), table.rows.end(),
                    [](const Row& row) { return row.oversubscribed; });
  if (oversubscribed > 0) {
    notes.push_back(absl::StrCat(
        oversubscribed,
        " of the rows are oversubscribed: more ranks and threads than cores. "
        "They say nothing about scaling, and are left out of its curves."));
  }
  if (table.counted == Counted::kCores) {
    notes.push_back(
        "Ranks of one series have different numbers of threads (the launcher's "
        "choice): N counts cores, ranks x threads, and T1 is the time on the "
        "fewest.");
  }
  if (const std::string machines = MachinesOf(table); !machines.empty()) {
    notes.push_back(
        absl::StrCat("The runs were not made on one machine: ", machines,
                     ". Rows differ by their machines, too; to measure on one, "
                     "run it there with another --output."));
  }
  for (const Row& row : table.rows) {
    for (const Sample& sample : row.samples) {
      if (sample.items_per_second) continue;
      notes.push_back(absl::StrCat("Failed: ", Describe(row.configuration),
                                   ", repeat ", sample.repeat + 1, ": ",
                                   sample.failure, " (", sample.log, ")"));
    }
  }
  return notes;
}

}  // namespace hvdlite::scaling_sweep
