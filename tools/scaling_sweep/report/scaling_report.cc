#include "tools/scaling_sweep/report/scaling_report.h"

#include <cmath>
#include <limits>
#include <map>
#include <optional>
#include <set>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_format.h"
#include "absl/strings/str_join.h"
#include "support/text_table.h"
#include "tools/scaling_sweep/report/scaling_text.h"
#include "tools/scaling_sweep/run/command.h"

namespace hvdlite::scaling_sweep {
namespace {

constexpr double kNone = std::numeric_limits<double>::quiet_NaN();

using Group = std::vector<size_t>;

using Intervals = std::optional<support::Interval> Row::*;

// Returns a curve of `value_of(row)` over `x_of(row)`. Its error bars scale
// `interval`, which belongs to `measured`.
template <typename XOf, typename ValueOf>
support::Curve CurveOf(const ScalingTable& table, const Group& group,
                       const XOf& x_of, const ValueOf& value_of,
                       std::optional<double> Row::*measured,
                       Intervals interval) {
  support::Curve curve = {.name = SeriesName(table, table.rows[group.front()]),
                          .values = {}};
  for (const size_t index : group) {
    const Row& row = table.rows[index];
    const double value = value_of(row);
    curve.x.push_back(x_of(row));
    curve.values.push_back(value);
    const double scale = value / *(row.*measured);
    const std::optional<support::Interval>& ends = row.*interval;
    curve.low.push_back(ends ? ends->low * scale : kNone);
    curve.high.push_back(ends ? ends->high * scale : kNone);
  }
  return curve;
}

// Returns the fastest row of each N.
Group FastestOfEachN(const ScalingTable& table, const Group& group) {
  Group fastest;
  for (const size_t index : group) {
    const Row& row = table.rows[index];
    if (fastest.empty() || table.rows[fastest.back()].n != row.n) {
      fastest.push_back(index);
    } else if (*table.rows[fastest.back()].items_per_second <
               *row.items_per_second) {
      fastest.back() = index;
    }
  }
  return fastest;
}

template <typename IdealOf>
support::Curve Ideal(const std::set<double>& all_n, const IdealOf& ideal_of) {
  support::Curve curve = {.name = "ideal", .values = {}};
  for (const double n : all_n) {
    curve.x.push_back(n);
    curve.values.push_back(ideal_of(n));
  }
  curve.dashed = true;
  return curve;
}

using Charts = std::vector<std::pair<std::string, support::Chart>>;

// If N counts cores, x is the number of ranks, which separates worlds with the
// same number of cores.
void AddSpeedChart(const ScalingTable& table, Charts& charts) {
  const bool by_ranks = table.counted == Counted::kCores;
  const auto x_of = [&](const Row& row) -> double {
    return by_ranks ? row.configuration.ranks() : row.n;
  };
  support::Chart chart = {
      .title = "Speed",
      .x_label = by_ranks ? "ranks" : CountedName(table.counted),
      .y_label = absl::StrCat(table.items, "/s, all ranks together"),
      .curves = {},
      .log_x = true,
      .log_y = true};
  std::set<double> all_x;
  double per_x = 0;  // of the series that is fastest per N
  for (Group group : table.Groups()) {
    std::stable_sort(group.begin(), group.end(), [&](size_t a, size_t b) {
      return x_of(table.rows[a]) < x_of(table.rows[b]);
    });
    const Row& first = table.rows[group.front()];
    if (x_of(first) == x_of(table.rows[group.back()])) continue;
    for (const size_t index : group) all_x.insert(x_of(table.rows[index]));
    per_x = std::max(per_x, *first.items_per_second / x_of(first));
    chart.curves.push_back(CurveOf(
        table, group, x_of,
        [](const Row& row) { return *row.items_per_second; },
        &Row::items_per_second, &Row::interval));
  }
  if (chart.curves.empty()) return;
  if (!by_ranks) {
    chart.curves.push_back(
        Ideal(all_x, [per_x](double n) { return per_x * n; }));
  }
  charts.emplace_back("items_per_second.svg", std::move(chart));
}

void AddEfficiencyCharts(const ScalingTable& table, Charts& charts) {
  support::Chart speed_up = {
      .title = absl::StrCat(
          "Speed-up (",
          table.scaling == STRONG ? "strong: T1/TN" : "weak: N*T1/TN", ")"),
      .x_label = CountedName(table.counted),
      .y_label = "times the smallest N",
      .curves = {},
      .log_x = true,
      .log_y = true};
  support::Chart efficiency = {
      .title = absl::StrCat("Efficiency (", table.EfficiencyTitle(), ")"),
      .x_label = CountedName(table.counted),
      .y_label = "%",
      .curves = {},
      .log_x = true,
      .y_from_zero = true};
  const auto n_of = [](const Row& row) -> double { return row.n; };
  std::set<double> all_n;
  std::set<int> bases;
  for (const Group& every : table.Groups()) {
    const Group group = FastestOfEachN(table, every);
    if (group.size() < 2) continue;
    for (const size_t index : group) all_n.insert(table.rows[index].n);
    bases.insert(table.rows[group.front()].n);
    speed_up.curves.push_back(CurveOf(
        table, group, n_of, [](const Row& row) { return *row.speed_up; },
        &Row::efficiency, &Row::efficiency_interval));
    efficiency.curves.push_back(CurveOf(
        table, group, n_of,
        [](const Row& row) { return 100 * *row.efficiency; }, &Row::efficiency,
        &Row::efficiency_interval));
  }
  if (efficiency.curves.empty()) return;
  if (bases.size() == 1) {
    const double base_n = *bases.begin();
    speed_up.curves.push_back(
        Ideal(all_n, [base_n](double n) { return n / base_n; }));
  }
  efficiency.curves.push_back(Ideal(all_n, [](double) { return 100.0; }));
  charts.emplace_back("speed_up.svg", std::move(speed_up));
  charts.emplace_back("efficiency.svg", std::move(efficiency));
}

std::string NumberOrNothing(std::optional<double> value) {
  return value ? absl::StrFormat("%.9g", *value) : "";
}

std::vector<std::string> CsvCells(const ScalingTable& table, const Row& row) {
  const Configuration& configuration = row.configuration;
  std::vector<std::string> cells = {
      configuration.setting,
      configuration.mapping,
      absl::StrCat(configuration.nodes),
      absl::StrCat(configuration.ranks()),
      absl::StrJoin(row.threads, "-"),
      row.oversubscribed ? "yes" : "no",
      NumberOrNothing(row.items_per_second),
      row.interval ? NumberOrNothing(row.interval->low) : "",
      row.interval ? NumberOrNothing(row.interval->high) : "",
      NumberOrNothing(row.epoch_seconds),
      table.EfficiencyKind(),
      CountedName(table.counted),
      absl::StrCat(row.n),
      row.efficiency ? absl::StrCat(row.base_n) : "",
      NumberOrNothing(row.speed_up),
      NumberOrNothing(row.efficiency),
      row.efficiency_interval ? NumberOrNothing(row.efficiency_interval->low)
                              : "",
      row.efficiency_interval ? NumberOrNothing(row.efficiency_interval->high)
                              : "",
      row.shares ? NumberOrNothing(row.shares->negotiating) : "",
      row.shares ? NumberOrNothing(row.shares->communicating) : "",
      row.shares ? NumberOrNothing(row.shares->exposed) : "",
      absl::StrCat(row.samples.size()),
      absl::StrCat(row.failures)};
  return cells;
}

using support::EscapeHtml;

constexpr char kStyle[] =
    "<style>.oversubscribed{color:#888}.runs{font-size:12px}"
    "td,th{white-space:nowrap}"
    ".command,.properties td{white-space:normal}"
    ".command{display:block;font-family:monospace;text-align:left;"
    "min-width:30em;overflow-wrap:anywhere}</style>\n";

std::string TableRow(const std::vector<std::string>& cells, const char* tag,
                     const std::string& css_class = "") {
  std::string row = css_class.empty()
                        ? "<tr>"
                        : absl::StrCat("<tr class=\"", css_class, "\">");
  for (const std::string& cell : cells) {
    absl::StrAppend(&row, "<", tag, ">", cell, "</", tag, ">");
  }
  return row + "</tr>\n";
}

std::vector<std::string> Escaped(std::vector<std::string> cells) {
  for (std::string& cell : cells) cell = EscapeHtml(cell);
  return cells;
}

std::string Link(const std::string& file, const char* text) {
  if (file.empty()) return "-";
  return absl::StrCat("<a href=\"", EscapeHtml(file), "\">", text, "</a>");
}

std::string OtherPrograms(const Sample& sample) {
  const auto told = sample.machine.find("other programs");
  return told == sample.machine.end() ? "-" : EscapeHtml(told->second);
}

std::string RunsTable(const ScalingTable& table) {
  std::string rows =
      TableRow({"configuration", "repeat", "items/s", "start", "seconds",
                "host", "other programs", "threads", "files", "command"},
               "th");
  for (const auto& row : table.rows) {
    for (const Sample& sample : row.samples) {
      const std::string speed =
          sample.items_per_second
              ? support::NumberText(*sample.items_per_second)
              : absl::StrCat("failed: ", EscapeHtml(sample.failure));
      absl::StrAppend(
          &rows,
          TableRow(
              {EscapeHtml(Describe(row.configuration)),
               absl::StrCat(sample.repeat + 1), speed,
               EscapeHtml(sample.start_time),
               absl::StrFormat("%.1f", sample.seconds), EscapeHtml(sample.host),
               OtherPrograms(sample),
               sample.threads_used > 0 ? absl::StrCat(sample.threads_used)
                                       : "-",
               absl::StrCat(Link(sample.trace, "trace"), " ",
                            Link(sample.report, "report"), " ",
                            Link(sample.log, "log")),
               absl::StrCat("<span class=\"command\">",
                            EscapeHtml(ShellText(sample.command)), "</span>")},
              "td", sample.oversubscribed ? "oversubscribed" : ""));
    }
  }
  return absl::StrCat("<table class=\"runs\">\n", rows, "</table>\n");
}

}  // namespace

std::vector<std::pair<std::string, support::Chart>> ScalingCharts(
    const ScalingTable& table) {
  Charts charts;
  AddSpeedChart(table, charts);
  AddEfficiencyCharts(table, charts);
  return charts;
}

std::string ScalingCsv(const ScalingTable& table) {
  std::vector<std::vector<std::string>> rows;
  for (const Row& row : table.rows) rows.push_back(CsvCells(table, row));
  return support::CsvTable({"setting",
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
                            "efficiency_low",
                            "efficiency_high",
                            "negotiating",
                            "communicating",
                            "exposed",
                            "runs",
                            "failed"},
                           rows);
}

std::string HtmlReport(const ScalingTable& table) {
  const TextCells cells = CellsOf(table);
  std::string body =
      absl::StrCat(kStyle, "<table>\n", TableRow(Escaped(cells.titles), "th"));
  for (size_t i = 0; i < table.rows.size(); ++i) {
    absl::StrAppend(
        &body, TableRow(Escaped(cells.rows[i]), "td",
                        table.rows[i].oversubscribed ? "oversubscribed" : ""));
  }
  absl::StrAppend(&body, "</table>\n");
  for (const std::string& note : Notes(table)) {
    absl::StrAppend(&body, "<p>", EscapeHtml(note), "</p>\n");
  }
  for (const auto& [file, chart] : ScalingCharts(table)) {
    absl::StrAppend(&body, support::ChartSection(chart));
  }
  absl::StrAppend(&body, support::PropertyTable("Settings", table.settings));
  for (const support::Properties& machine : MachinesOf(table)) {
    absl::StrAppend(&body, support::PropertyTable("Machine", machine));
  }
  absl::StrAppend(&body,
                  "<h2>Runs</h2>\n<p>Traces open in chrome://tracing and "
                  "Perfetto; timeline_viewer summarises them.</p>\n",
                  RunsTable(table));
  return support::HtmlPage(absl::StrCat("Sweep ", table.name), body);
}

}  // namespace hvdlite::scaling_sweep
