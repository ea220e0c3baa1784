#include "tools/scaling_sweep/report/scaling_table.h"

#include <algorithm>
#include <filesystem>
#include <map>
#include <tuple>
#include <utility>

#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "base/status_macros.h"
#include "support/statistics.h"
#include "timeline/read/trace_reader.h"
#include "timeline/record/trace_format.h"
#include "tools/scaling_sweep/run/sweep_runner.h"

namespace hvdlite::scaling_sweep {
namespace {

constexpr uint64_t kTableSeed = 1;  // for the intervals

using support::Properties;
using timeline::TimeShares;

// Rows with the same key differ only in N.
auto SeriesKey(const ScalingTable& table, const Row& row) {
  const Configuration& configuration = row.configuration;
  return std::make_tuple(
      configuration.setting, configuration.mapping, configuration.threads,
      configuration.alone,
      table.counted == Counted::kNodes ? configuration.ranks_per_node : 0);
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

// Returns the speeds of the successful runs.
std::vector<double> SpeedsOf(const std::vector<Sample>& samples) {
  std::vector<double> speeds;
  for (const Sample& sample : samples) {
    if (sample.items_per_second) speeds.push_back(*sample.items_per_second);
  }
  return speeds;
}

Row MakeRow(const ScalingTable& table, const Spec& spec,
            const Configuration& configuration, std::vector<Sample> samples,
            const ShareReader& read_shares) {
  Row row;
  row.configuration = configuration;
  row.n = table.counted == Counted::kNodes ? configuration.nodes
                                           : configuration.ranks();
  const std::vector<double> speeds = SpeedsOf(samples);
  row.failures = static_cast<int>(samples.size() - speeds.size());
  for (const Sample& sample : samples) {
    // A failed run may not have reported its threads.
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
  row.interval = support::MedianInterval(speeds, kTableSeed);
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
  for (Row& row : table.rows) row.n = row.cores();
}

void FillInEfficiency(ScalingTable& table) {
  using Key = decltype(SeriesKey(table, table.rows.front()));
  std::map<Key, const Row*> bases;
  for (const Row& row : table.rows) {
    if (!Scales(row)) continue;
    const Row*& base = bases[SeriesKey(table, row)];
    if (base == nullptr || row.n < base->n ||
        (row.n == base->n && *row.items_per_second > *base->items_per_second)) {
      base = &row;
    }
  }
  for (Row& row : table.rows) {
    if (!Scales(row)) continue;
    const Row& base = *bases.at(SeriesKey(table, row));
    row.base_n = base.n;
    row.is_reference = &row == &base;
    row.speed_up = *row.items_per_second / *base.items_per_second;
    // In both kinds of scaling: the speed of N divided by N times that of 1.
    row.efficiency = *row.speed_up * base.n / row.n;
    if (row.is_reference) continue;
    row.efficiency_interval = support::MedianRatioInterval(
        SpeedsOf(row.samples), SpeedsOf(base.samples), kTableSeed);
    if (!row.efficiency_interval) continue;
    const double scale = *row.efficiency / *row.speed_up;
    row.efficiency_interval->low *= scale;
    row.efficiency_interval->high *= scale;
  }
}

Properties SettingsOf(const Spec& spec) {
  const auto words = [](const auto& list) { return absl::StrJoin(list, " "); };
  Properties settings = {
      {"command", words(spec.command())},
      {"scaling", spec.scaling() == STRONG ? "strong: the same work for all"
                                           : "weak: the work grows with N"},
      {"runs", absl::StrCat(spec.repeats(),
                            " of each configuration, of at "
                            "most ",
                            spec.time_limit_seconds(), " s")}};
  const auto add = [&](const std::string& name, const std::string& value) {
    if (!value.empty()) settings.emplace_back(name, value);
  };
  if (spec.batch().size() > 0) {
    add("batch", absl::StrCat(spec.batch().size()));
  }
  if (spec.warmup_intervals() > 0) {
    add("warm-up", absl::StrCat(spec.warmup_intervals(),
                                " intervals of each report are ignored"));
  }
  const auto variables = [](const auto& list) {
    return absl::StrJoin(list, " ", [](std::string* out, const Variable& v) {
      absl::StrAppend(out, v.name(), "=", v.value());
    });
  };
  add("variables", variables(spec.environment()));
  add("hvdliterun's flags", words(spec.launcher_flag()));
  for (const Setting& setting : spec.setting()) {
    std::vector<std::string> parts = {variables(setting.environment()),
                                      words(setting.launcher_flag()),
                                      words(setting.argument())};
    if (setting.alone()) parts.push_back("without hvdliterun");
    parts.erase(std::remove(parts.begin(), parts.end(), ""), parts.end());
    add(absl::StrCat("setting ", setting.name()),
        parts.empty() ? "as above" : absl::StrJoin(parts, " "));
  }
  return settings;
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

std::string ScalingTable::EfficiencyKind() const {
  return scaling == STRONG ? "strong: T1/(N*TN)" : "weak: T1/TN";
}

std::string ScalingTable::EfficiencyTitle() const {
  return absl::StrCat(EfficiencyKind(), ", N = ", CountedName(counted));
}

ShareReader ReadSharesBelow(const std::string& directory) {
  return [directory](std::string file) -> std::optional<TimeShares> {
    // A per-rank trace file represents all ranks.
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
  if (!results.spec.items().empty()) table.items = results.spec.items();
  table.settings = SettingsOf(results.spec);
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
  // In weak scaling the work grows with the ranks, not with their threads.
  if (table.counted == Counted::kRanks && table.scaling == STRONG) {
    CountCoresIfThreadsDiffer(table);
  }
  FillInEfficiency(table);
  return table;
}

}  // namespace hvdlite::scaling_sweep
