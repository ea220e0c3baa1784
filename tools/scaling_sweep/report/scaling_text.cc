#include "tools/scaling_sweep/report/scaling_text.h"

#include <algorithm>
#include <functional>
#include <map>
#include <optional>
#include <utility>

#include "absl/strings/ascii.h"
#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_format.h"
#include "absl/strings/str_join.h"
#include "support/text_table.h"

namespace hvdlite::scaling_sweep {
namespace {

using support::Properties;

constexpr char kUnknown[] = "-";
constexpr char kOneRun[] = "one run";
constexpr char kOversubscribed[] = "oversubscribed";

std::string NumberOrUnknown(std::optional<double> value) {
  return value ? support::NumberText(*value) : kUnknown;
}

std::string Percent(std::optional<double> share) {
  return share ? absl::StrFormat("%.1f %%", *share * 100) : kUnknown;
}

std::string IntervalText(const std::optional<support::Interval>& interval) {
  if (!interval) return kUnknown;
  return absl::StrCat(support::NumberText(interval->low), "..",
                      support::NumberText(interval->high));
}

// An interval needs at least two runs.
bool HasOneRun(const Row& row) { return row.items_per_second && !row.interval; }

// Formats an interval as "92.1..97.9 %".
std::string EfficiencyInterval(const Row& row) {
  if (!row.efficiency_interval) {
    return row.efficiency && !row.is_reference ? kOneRun : kUnknown;
  }
  return absl::StrFormat("%.1f..%.1f %%", row.efficiency_interval->low * 100,
                         row.efficiency_interval->high * 100);
}

std::string OrUnknown(const std::string& text) {
  return text.empty() ? kUnknown : text;
}

// "auto" is the launcher's choice, if it is not known.
std::string Threads(const Row& row) {
  return row.threads.empty() ? "auto" : absl::StrJoin(row.threads, " or ");
}

// Returns "h (2 cores): 3 runs" for each host.
std::string HostsOf(const ScalingTable& table) {
  std::map<std::pair<std::string, int>, int> runs;
  for (const Row& row : table.rows) {
    for (const Sample& sample : row.samples) {
      ++runs[{sample.host, sample.cores}];
    }
  }
  if (runs.size() < 2) return "";
  return absl::StrJoin(runs, "; ", [](std::string* out, const auto& entry) {
    const auto& [machine, count] = entry;
    absl::StrAppend(out, machine.first, " (",
                    support::Counted(machine.second, "core"),
                    "): ", support::Counted(count, "run"));
  });
}

// Returns the speed of the first row that has a result.
std::optional<double> FirstSpeed(const ScalingTable& table) {
  for (const Row& row : table.rows) {
    if (row.items_per_second) return row.items_per_second;
  }
  return std::nullopt;
}

std::string Efficiency(const Row& row) {
  if (row.oversubscribed) return kOversubscribed;
  return Percent(row.efficiency) + (row.is_reference ? " *" : "");
}

bool HasEfficiencyInterval(const ScalingTable& table) {
  return std::any_of(table.rows.begin(), table.rows.end(), [](const Row& row) {
    return row.efficiency_interval.has_value();
  });
}

struct Column {
  std::string title;
  std::function<std::string(const Row&)> cell;
  bool tells_row = false;  // identifies the row, rather than its result
  // The column is left out if all rows are equal, or if all have this value.
  bool unless_all_equal = false;
  std::string unless_all = {};
};

std::vector<Column> ColumnsOf(const ScalingTable& table) {
  using Shares = timeline::TimeShares;
  const auto share = [](std::optional<double> (*of)(const Shares&)) {
    return [of](const Row& row) {
      return row.shares ? Percent(of(*row.shares)) : std::string(kUnknown);
    };
  };
  const std::optional<double> first = FirstSpeed(table);
  return {
      {"setting",
       [](const Row& row) { return OrUnknown(row.configuration.setting); },
       /*tells_row=*/true, /*unless_all_equal=*/true},
      {"mapping",
       [](const Row& row) { return OrUnknown(row.configuration.mapping); },
       true, true},
      {"nodes",
       [](const Row& row) { return absl::StrCat(row.configuration.nodes); },
       true, true},
      {"ranks",
       [](const Row& row) { return absl::StrCat(row.configuration.ranks()); },
       true},
      {"threads", Threads, true},
      {"cores",
       [](const Row& row) {
         return row.cores() > 0 ? absl::StrCat(row.cores()) : kUnknown;
       },
       true, false, kUnknown},
      {"items/s",
       [](const Row& row) { return NumberOrUnknown(row.items_per_second); }},
      {"interval",
       [](const Row& row) {
         return HasOneRun(row) ? kOneRun : IntervalText(row.interval);
       },
       false, false, kOneRun},
      {"x first",
       [first, alone = table.Groups().size() < 2](const Row& row) {
         if (alone || !first || !row.items_per_second) {
           return std::string(kUnknown);
         }
         return absl::StrFormat("%.3g", *row.items_per_second / *first);
       },
       false, false, kUnknown},
      {"epoch s",
       [](const Row& row) { return NumberOrUnknown(row.epoch_seconds); }, false,
       false, kUnknown},
      {"speed-up",
       [](const Row& row) {
         return row.speed_up ? absl::StrFormat("%.3g", *row.speed_up)
                             : kUnknown;
       }},
      {"efficiency", Efficiency},
      {"its interval",
       [any = HasEfficiencyInterval(table)](const Row& row) {
         return any ? EfficiencyInterval(row) : kUnknown;
       },
       false, false, kUnknown},
      {"negotiating", share([](const Shares& s) -> std::optional<double> {
         return s.negotiating;
       }),
       false, false, kUnknown},
      {"communicating", share([](const Shares& s) -> std::optional<double> {
         return s.communicating;
       }),
       false, false, kUnknown},
      {"exposed", share([](const Shares& s) { return s.exposed; }), false,
       false, kUnknown},
      {"runs", [](const Row& row) { return absl::StrCat(row.samples.size()); }},
      {"failed", [](const Row& row) { return absl::StrCat(row.failures); },
       false, false, "0"}};
}

// Whether to show a column.
bool IsShown(const Column& column, const std::vector<std::string>& cells) {
  if (cells.empty()) return true;
  const bool all_equal =
      std::count(cells.begin(), cells.end(), cells.front()) ==
      static_cast<std::ptrdiff_t>(cells.size());
  return !all_equal ||
         (!column.unless_all_equal && cells.front() != column.unless_all);
}

// Returns "2 ranks x 1 thread".
std::string WorldText(const Row& row) {
  const std::string ranks = support::Counted(row.configuration.ranks(), "rank");
  if (row.threads.size() != 1) return ranks;
  return absl::StrCat(ranks, " x ",
                      support::Counted(*row.threads.begin(), "thread"));
}

std::string ReferenceNote(const ScalingTable& table) {
  std::vector<std::string> references;
  for (const Row& row : table.rows) {
    if (!row.is_reference) continue;
    references.push_back(absl::StrCat(SeriesName(table, row), ": ",
                                      WorldText(row), ", N = ", row.n));
  }
  if (references.empty()) return "";
  return absl::StrCat(
      "Speed-up and efficiency (", table.EfficiencyTitle(),
      ") compare a row with the starred row of the same setting, mapping and "
      "threads: the one with the smallest N, and the fastest of several (",
      absl::StrJoin(references, "; "), ").");
}

// Explains how certain an efficiency is.
std::string IntervalNote(const ScalingTable& table) {
  std::string note;
  if (HasEfficiencyInterval(table)) {
    note =
        "The 95 % interval of an efficiency comes from the two medians that it "
        "compares; both are resampled, and few runs widen the interval. ";
  }
  const auto single =
      std::count_if(table.rows.begin(), table.rows.end(), HasOneRun);
  if (single > 0) {
    absl::StrAppend(&note, single, single == 1 ? " row has" : " rows have",
                    " only one run, so the spread of runs is unknown: such "
                    "rows, and rows that are compared with them, have no "
                    "interval. More repeats give one.");
  }
  return std::string(absl::StripTrailingAsciiWhitespace(note));
}

// Returns a line for each kind of failure, with the log of its first run.
std::vector<std::string> FailuresOf(const Row& row) {
  std::map<std::string, std::vector<const Sample*>> samples_of;
  for (const Sample& sample : row.samples) {
    if (!sample.items_per_second) samples_of[sample.failure].push_back(&sample);
  }
  std::vector<std::string> lines;
  for (const auto& [failure, samples] : samples_of) {
    lines.push_back(
        absl::StrCat("Failed: ", Describe(row.configuration), ", repeat",
                     samples.size() == 1 ? " " : "s ",
                     absl::StrJoin(samples, ", ",
                                   [](std::string* out, const Sample* sample) {
                                     absl::StrAppend(out, sample->repeat + 1);
                                   }),
                     ": ", failure, " (", samples.front()->log, ")"));
  }
  return lines;
}

}  // namespace

std::string SeriesName(const ScalingTable& table, const Row& row) {
  const Configuration& configuration = row.configuration;
  std::vector<std::string> parts;
  if (!configuration.setting.empty()) parts.push_back(configuration.setting);
  if (!configuration.mapping.empty()) {
    parts.push_back(absl::StrCat("by ", configuration.mapping));
  }
  if (table.counted == Counted::kNodes) {
    parts.push_back(absl::StrCat(
        support::Counted(configuration.ranks_per_node, "rank"), " per node"));
  }
  if (configuration.threads > 0) {
    parts.push_back(support::Counted(configuration.threads, "thread"));
  }
  return parts.empty() ? table.name : absl::StrJoin(parts, ", ");
}

TextCells CellsOf(const ScalingTable& table) {
  TextCells text;
  text.rows.resize(table.rows.size());
  for (const Column& column : ColumnsOf(table)) {
    std::vector<std::string> cells;
    for (const Row& row : table.rows) cells.push_back(column.cell(row));
    if (!IsShown(column, cells)) continue;
    text.titles.push_back(column.title);
    if (column.tells_row) ++text.keys;
    for (size_t i = 0; i < cells.size(); ++i) text.rows[i].push_back(cells[i]);
  }
  return text;
}

std::vector<Properties> MachinesOf(const ScalingTable& table) {
  constexpr absl::string_view kBusy = "other programs";
  struct Runs {
    int all = 0;
    int busy = 0;
    int told = 0;  // number of runs that reported whether it was busy
  };
  std::map<std::map<std::string, std::string>, Runs> machines;
  for (const Row& row : table.rows) {
    for (const Sample& sample : row.samples) {
      std::map<std::string, std::string> machine = sample.machine;
      const auto busy = machine.extract(std::string(kBusy));
      if (machine.empty()) {
        machine = {{"host", sample.host},
                   {"cores", absl::StrCat(sample.cores)}};
      }
      Runs& runs = machines[machine];
      ++runs.all;
      if (busy.empty()) continue;
      ++runs.told;
      if (absl::EndsWith(busy.mapped(), "busy")) ++runs.busy;
    }
  }
  std::vector<Properties> found;
  for (const auto& [machine, runs] : machines) {
    Properties& properties = found.emplace_back();
    const auto place = [](const std::string& name) {
      constexpr absl::string_view kOrder[] = {"host",   "processor", "cores",
                                              "memory", "kernel",    "hvdlite"};
      return std::find(std::begin(kOrder), std::end(kOrder), name) - kOrder;
    };
    properties.assign(machine.begin(), machine.end());
    std::stable_sort(properties.begin(), properties.end(),
                     [&](const auto& a, const auto& b) {
                       return place(a.first) < place(b.first);
                     });
    properties.emplace_back("runs", absl::StrCat(runs.all));
    if (runs.told > 0) {
      properties.emplace_back(kBusy,
                              absl::StrCat("busy in ", runs.busy, " of ",
                                           support::Counted(runs.told, "run")));
    }
  }
  return found;
}

std::vector<std::string> Notes(const ScalingTable& table) {
  std::vector<std::string> notes = {
      ReferenceNote(table),
      "Items/s are the speed of all ranks together, the median of the runs. "
      "The interval is the 95 % bootstrap interval of the median; it is never "
      "wider than the range of the runs.",
      IntervalNote(table)};
  if (table.scaling == STRONG && table.counted == Counted::kNodes) {
    notes.push_back(absl::StrCat(
        "An efficiency is also the ", table.items,
        " processed at N nodes per node: the speed of each node as a share of "
        "the speed of a single node."));
  }
  const bool any_shares =
      std::any_of(table.rows.begin(), table.rows.end(),
                  [](const Row& row) { return row.shares.has_value(); });
  if (any_shares) {
    notes.push_back(
        "Shares of the traced time: negotiating while no bucket is reduced "
        "(costs nothing while the rank computes); communicating; exposed, "
        "while the application waits for gradients.");
  }
  const auto oversubscribed =
      std::count_if(table.rows.begin(), table.rows.end(),
                    [](const Row& row) { return row.oversubscribed; });
  if (oversubscribed > 0) {
    notes.push_back(absl::StrCat(
        oversubscribed, oversubscribed == 1 ? " row is" : " rows are",
        " oversubscribed: more ranks and threads than cores. "
        "They do not show scaling and are left out of the curves."));
  }
  if (table.counted == Counted::kCores) {
    notes.push_back(
        "Ranks of one series have different numbers of threads (the launcher's "
        "choice), so twice the ranks are not twice the cores. Therefore N "
        "counts cores, ranks x threads. Rows with the same number of cores "
        "divide them differently; less than 100 % shows that the other "
        "division is faster.");
  }
  if (const std::string hosts = HostsOf(table); !hosts.empty()) {
    notes.push_back(
        absl::StrCat("The runs are from several machines: ", hosts,
                     ". This also makes rows differ. To measure on one "
                     "machine, run the sweep there with another --output."));
  }
  for (const Row& row : table.rows) {
    for (std::string& note : FailuresOf(row)) notes.push_back(std::move(note));
  }
  std::erase(notes, "");
  return notes;
}

std::string TableText(const ScalingTable& table) {
  const TextCells cells = CellsOf(table);
  std::string text =
      support::TextTable(cells.titles, cells.rows, {.keys = cells.keys});
  for (const std::string& note : Notes(table)) {
    absl::StrAppend(&text, support::Wrapped(note));
  }
  return text;
}

}  // namespace hvdlite::scaling_sweep
