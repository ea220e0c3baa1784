#include "tools/scaling_sweep/report/html_report.h"

#include <map>
#include <vector>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_format.h"
#include "tools/scaling_sweep/report/scaling_charts.h"
#include "tools/scaling_sweep/report/table_cells.h"
#include "tools/scaling_sweep/run/command.h"
#include "tools/support/chart.h"
#include "tools/support/html_text.h"

namespace hvdlite::scaling_sweep {
namespace {

using base::EscapeHtml;

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

std::string HtmlReport(const ScalingTable& table) {
  const std::string title = EscapeHtml(absl::StrCat("Sweep ", table.name));
  std::string page = absl::StrCat(
      "<!DOCTYPE html>\n<html lang=\"en\"><head><meta charset=\"utf-8\">\n"
      "<style>",
      kStyle, base::ChartStyle(), "</style>\n<title>", title,
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
                    base::ChartSvg(chart));
  }
  absl::StrAppend(&page,
                  "<h2>Runs</h2>\n<p>Traces open in chrome://tracing and "
                  "Perfetto; timeline_viewer summarises them.</p>\n",
                  RunsTable(table), "</body></html>\n");
  return page;
}

}  // namespace hvdlite::scaling_sweep
