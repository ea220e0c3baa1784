#include "tools/scaling_sweep/report/scaling_report.h"

#include <cmath>
#include <limits>
#include <map>
#include <optional>
#include <set>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_format.h"
#include "absl/strings/str_join.h"
#include "tools/scaling_sweep/report/efficiency.h"
#include "tools/scaling_sweep/run/command.h"
#include "tools/support/text_table.h"

namespace hvdlite::scaling_sweep {
namespace {

constexpr double kNone = std::numeric_limits<double>::quiet_NaN();

using Group = std::vector<size_t>;

// A curve of `value_of(row)`; its error bars stretch as those of items/s do.
template <typename ValueOf>
support::Curve CurveOf(const ScalingTable& table, const Group& group,
                       const ValueOf& value_of) {
  support::Curve curve = {.name = SeriesName(table, table.rows[group.front()]),
                          .values = {}};
  for (const size_t index : group) {
    const Row& row = table.rows[index];
    const double value = value_of(row);
    curve.x.push_back(row.n);
    curve.values.push_back(value);
    const double scale = value / *row.items_per_second;
    curve.low.push_back(row.interval ? row.interval->low * scale : kNone);
    curve.high.push_back(row.interval ? row.interval->high * scale : kNone);
  }
  return curve;
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

using support::EscapeHtml;

constexpr char kStyle[] =
    "body{font:14px sans-serif;margin:2em}svg{display:block}"
    "table{border-collapse:collapse}"
    "td,th{border:1px solid #ccc;padding:2px 8px;text-align:right}"
    "td:first-child,th:first-child{text-align:left}"
    ".oversubscribed{color:#888}.command{font-family:monospace}";

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

std::string RunsTable(const ScalingTable& table) {
  std::string rows =
      TableRow({"configuration", "repeat", "items/s", "start", "seconds",
                "host", "threads", "files", "command"},
               "th");
  for (const auto& row : table.rows) {
    for (const Sample& sample : row.samples) {
      const std::string speed =
          sample.items_per_second
              ? absl::StrFormat("%.4g", *sample.items_per_second)
              : absl::StrCat("failed: ", EscapeHtml(sample.failure));
      absl::StrAppend(
          &rows,
          TableRow(
              {EscapeHtml(Describe(row.configuration)),
               absl::StrCat(sample.repeat + 1), speed,
               EscapeHtml(sample.start_time),
               absl::StrFormat("%.1f", sample.seconds), EscapeHtml(sample.host),
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
  return absl::StrCat("<table>\n", rows, "</table>\n");
}

}  // namespace

std::vector<std::pair<std::string, support::Chart>> ScalingCharts(
    const ScalingTable& table) {
  std::vector<Group> groups;
  std::set<double> all_n;
  bool same_base = true;
  for (Group& group : table.Groups()) {
    if (group.size() < 2) continue;
    for (const size_t index : group) all_n.insert(table.rows[index].n);
    groups.push_back(std::move(group));
    same_base &= table.rows[groups.back().front()].n ==
                 table.rows[groups.front().front()].n;
  }
  if (groups.empty()) return {};

  const std::string x_label = CountedName(table.counted);
  support::Chart speed = {.title = "Items/s",
                          .x_label = x_label,
                          .curves = {},
                          .log2_x = true,
                          .log2_y = true};
  support::Chart speed_up = speed;
  speed_up.title = absl::StrCat(
      "Speed-up (", table.scaling == STRONG ? "strong: T1/TN" : "weak: N*T1/TN",
      ")");
  support::Chart efficiency = {
      .title = absl::StrCat("Efficiency, % (", table.EfficiencyTitle(), ")"),
      .x_label = x_label,
      .curves = {},
      .log2_x = true,
      .y_from_zero = true};
  for (const Group& group : groups) {
    speed.curves.push_back(CurveOf(
        table, group, [](const Row& row) { return *row.items_per_second; }));
    speed_up.curves.push_back(
        CurveOf(table, group, [](const Row& row) { return *row.speed_up; }));
    efficiency.curves.push_back(CurveOf(
        table, group, [](const Row& row) { return 100 * *row.efficiency; }));
  }
  // Of the group that is the fastest per N.
  double per_n = 0;
  for (const Group& group : groups) {
    const Row& base = table.rows[group.front()];
    per_n = std::max(per_n, *base.items_per_second / base.n);
  }
  speed.curves.push_back(Ideal(all_n, [per_n](double n) { return per_n * n; }));
  if (same_base) {
    const double base_n = *all_n.begin();
    speed_up.curves.push_back(
        Ideal(all_n, [base_n](double n) { return n / base_n; }));
  }
  efficiency.curves.push_back(Ideal(all_n, [](double) { return 100.0; }));
  return {{"items_per_second.svg", speed},
          {"speed_up.svg", speed_up},
          {"efficiency.svg", efficiency}};
}

std::string ScalingCsv(const ScalingTable& table) {
  std::vector<std::vector<std::string>> rows;
  for (const Row& row : table.rows) rows.push_back(Cells(table, row));
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
                            "negotiating",
                            "communicating",
                            "exposed",
                            "runs",
                            "failed"},
                           rows);
}

std::string HtmlReport(const ScalingTable& table) {
  const std::string title = EscapeHtml(absl::StrCat("Sweep ", table.name));
  std::string page = absl::StrCat(
      "<!DOCTYPE html>\n<html lang=\"en\"><head><meta charset=\"utf-8\">\n"
      "<style>",
      kStyle, support::ChartStyle(), "</style>\n<title>", title,
      "</title></head><body>\n<h1>", title, "</h1>\n<table>\n",
      TableRow(Escaped(ColumnTitles(table)), "th"));
  for (const auto& row : table.rows) {
    absl::StrAppend(&page,
                    TableRow(Escaped(CellsOf(table, row)), "td",
                             row.oversubscribed ? "oversubscribed" : ""));
  }
  absl::StrAppend(&page, "</table>\n");
  for (const std::string& note : Notes(table)) {
    absl::StrAppend(&page, "<p>", EscapeHtml(note), "</p>\n");
  }
  for (const auto& [file, chart] : ScalingCharts(table)) {
    absl::StrAppend(&page, "<h2>", EscapeHtml(chart.title), "</h2>\n",
                    support::ChartSvg(chart));
  }
  absl::StrAppend(&page,
                  "<h2>Runs</h2>\n<p>Traces open in chrome://tracing and "
                  "Perfetto; timeline_viewer summarises them.</p>\n",
                  RunsTable(table), "</body></html>\n");
  return page;
}

}  // namespace hvdlite::scaling_sweep
