#include "tools/scaling_sweep/report/scaling_table.h"

#include <algorithm>
#include <filesystem>
#include <map>
#include <tuple>
#include <utility>

#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_format.h"
#include "absl/strings/str_join.h"
#include "base/status_macros.h"
#include "timeline/trace_format.h"
#include "timeline/trace_reader.h"
#include "tools/scaling_sweep/report/efficiency.h"
#include "tools/scaling_sweep/run/sweep_runner.h"
#include "tools/support/statistics.h"

namespace hvdlite::scaling_sweep {
namespace {

constexpr uint64_t kSeed = 1;  // of the intervals

using timeline::TimeShares;

// Rows with the same differ in N alone.
auto SeriesKey(const ScalingTable& table, const Row& row) {
  const Configuration& configuration = row.configuration;
  return std::make_tuple(
      configuration.setting, configuration.mapping, configuration.threads,
      configuration.alone,
      table.counted == Counted::kNodes ? configuration.ranks_per_node : 0);
}

// 0: not known.
int CoresOf(const Row& row) {
  return row.threads.empty() ? 0
                             : row.configuration.ranks() * *row.threads.begin();
}

std::optional<TimeShares> MeanShares(const std::vector<Sample>& samples,
                                     const ShareReader& read_shares) {
  TimeShares sums;
  double exposed = 0;
  int traces = 0;
  int exposed_traces = 0;
  for (const Sample& sample : samples) {
    if (sample.trace.empty() || !sample.items_per_second) continue;
    const std::optional<TimeShares> shares = read_shares(sample.trace);
    if (!shares) continue;
    ++traces;
    sums.negotiating += shares->negotiating;
    sums.communicating += shares->communicating;
    sums.ranks = shares->ranks;
    if (shares->exposed) {
      ++exposed_traces;
      exposed += *shares->exposed;
    }
  }
  if (traces == 0) return std::nullopt;
  sums.negotiating /= traces;
  sums.communicating /= traces;
  if (exposed_traces > 0) sums.exposed = exposed / exposed_traces;
  return sums;
}

Row MakeRow(const ScalingTable& table, const Spec& spec,
            const Configuration& configuration, std::vector<Sample> samples,
            const ShareReader& read_shares) {
  Row row;
  row.configuration = configuration;
  row.n = table.counted == Counted::kNodes ? configuration.nodes
                                           : configuration.ranks();
  std::vector<double> speeds;
  for (const Sample& sample : samples) {
    if (sample.items_per_second) {
      speeds.push_back(*sample.items_per_second);
    } else {
      ++row.failures;
    }
  }
  for (const Sample& sample : samples) {
    // A run that failed may not have told its threads.
    if (!speeds.empty() && !sample.items_per_second) continue;
    row.oversubscribed |= sample.oversubscribed;
    if (sample.threads_used > 0) row.threads.insert(sample.threads_used);
  }
  if (row.threads.empty() && configuration.threads > 0) {
    row.threads.insert(configuration.threads);
  }
  row.shares = MeanShares(samples, read_shares);
  row.samples = std::move(samples);
  if (speeds.empty()) return row;
  row.items_per_second = support::Quantile(speeds, 0.5);
  row.interval = support::MedianInterval(speeds, kSeed);
  if (spec.items_per_epoch() > 0) {
    row.epoch_seconds =
        static_cast<double>(spec.items_per_epoch()) / *row.items_per_second;
  }
  return row;
}

bool Scales(const Row& row) {
  return row.items_per_second.has_value() && !row.oversubscribed &&
         row.threads.size() <= 1 && row.n > 0;
}

void CountCoresIfThreadsDiffer(ScalingTable& table) {
  using Key = decltype(SeriesKey(table, table.rows.front()));
  std::map<Key, std::set<int>> threads;
  bool differ = false;
  for (const Row& row : table.rows) {
    if (!Scales(row)) continue;
    std::set<int>& series = threads[SeriesKey(table, row)];
    series.insert(row.threads.begin(), row.threads.end());
    differ |= series.size() > 1;
  }
  if (!differ) return;
  table.counted = Counted::kCores;
  for (Row& row : table.rows) row.n = CoresOf(row);
}

void FillInEfficiency(ScalingTable& table) {
  using Key = decltype(SeriesKey(table, table.rows.front()));
  std::map<Key, const Row*> bases;
  for (const Row& row : table.rows) {
    if (!Scales(row)) continue;
    const Row*& base = bases[SeriesKey(table, row)];
    if (base == nullptr || row.n < base->n) base = &row;
  }
  for (Row& row : table.rows) {
    if (!Scales(row)) continue;
    const Row& base = *bases.at(SeriesKey(table, row));
    row.base_n = base.n;
    row.speed_up = *row.items_per_second / *base.items_per_second;
    row.efficiency =
        EfficiencyOfSpeeds(table.scaling, base.n, *base.items_per_second, row.n,
                           *row.items_per_second);
  }
}

constexpr char kUnknown[] = "-";
constexpr char kOversubscribed[] = "oversubscribed";

std::string Number(std::optional<double> value, const char* unit = "") {
  return value ? absl::StrFormat("%.4g%s", *value, unit) : kUnknown;
}

std::string Percent(std::optional<double> share) {
  return share ? absl::StrFormat("%.1f %%", *share * 100) : kUnknown;
}

std::string IntervalText(const std::optional<support::Interval>& interval) {
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

std::string CountedName(Counted counted) {
  switch (counted) {
    case Counted::kNodes:
      return "nodes";
    case Counted::kCores:
      return "cores (ranks x threads)";
    case Counted::kRanks:
      break;
  }
  return "ranks";
}

std::vector<std::vector<size_t>> ScalingTable::Groups() const {
  std::vector<std::vector<size_t>> groups;
  for (size_t i = 0; i < rows.size(); ++i) {
    if (!rows[i].efficiency) continue;
    const auto group =
        std::find_if(groups.begin(), groups.end(), [&](const auto& members) {
          return SeriesKey(*this, rows[members.front()]) ==
                 SeriesKey(*this, rows[i]);
        });
    if (group == groups.end()) {
      groups.push_back({i});
    } else {
      group->push_back(i);
    }
  }
  for (auto& group : groups) {
    std::stable_sort(group.begin(), group.end(), [this](size_t a, size_t b) {
      return rows[a].n < rows[b].n;
    });
  }
  return groups;
}

std::string ScalingTable::EfficiencyTitle() const {
  return absl::StrCat(EfficiencyLabel(scaling), ", N = ", CountedName(counted));
}

ShareReader ReadSharesBelow(const std::string& directory) {
  return [directory](std::string file) -> std::optional<TimeShares> {
    // A part stands for all ranks'.
    const std::string part = timeline::TracePartPath("", 0);
    if (absl::EndsWith(file, part)) file.resize(file.size() - part.size());
    const absl::StatusOr<timeline::Trace> trace =
        timeline::ReadTrace((std::filesystem::path(directory) / file).string());
    if (!trace.ok()) return std::nullopt;
    return timeline::SharesOf(*trace);
  };
}

absl::StatusOr<ScalingTable> MakeTable(const Results& results,
                                       const ShareReader& read_shares) {
  HVDLITE_ASSIGN_OR_RETURN(const std::vector<Configuration> configurations,
                           Configurations(results.spec));
  ScalingTable table;
  table.name = results.spec.name();
  table.scaling = results.spec.scaling();
  if (std::any_of(configurations.begin(), configurations.end(),
                  [](const Configuration& configuration) {
                    return configuration.nodes > 1;
                  })) {
    table.counted = Counted::kNodes;
  }
  for (const Configuration& configuration : configurations) {
    table.rows.push_back(MakeRow(table, results.spec, configuration,
                                 SamplesOf(results.samples, Key(configuration)),
                                 read_shares));
  }
  // In weak scaling the work grows with the ranks, whatever their threads.
  if (table.counted == Counted::kRanks && table.scaling == STRONG) {
    CountCoresIfThreadsDiffer(table);
  }
  FillInEfficiency(table);
  return table;
}

std::string SeriesName(const ScalingTable& table, const Row& row) {
  const Configuration& configuration = row.configuration;
  std::vector<std::string> parts;
  if (!configuration.setting.empty()) parts.push_back(configuration.setting);
  if (!configuration.mapping.empty()) {
    parts.push_back(absl::StrCat("by ", configuration.mapping));
  }
  if (table.counted == Counted::kNodes) {
    parts.push_back(
        absl::StrCat(configuration.ranks_per_node, " ranks per node"));
  }
  if (configuration.threads > 0) {
    parts.push_back(absl::StrCat(configuration.threads, " threads"));
  }
  return parts.empty() ? table.name : absl::StrJoin(parts, ", ");
}

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
