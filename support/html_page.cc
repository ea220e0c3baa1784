#include "support/html_page.h"

#include "absl/strings/str_cat.h"

namespace hvdlite::support {
namespace {

constexpr char kStyle[] =
    "body{font:14px sans-serif;margin:2em;max-width:75em}"
    "h2{margin:1.5em 0 .5em}"
    "svg{display:block;max-width:100%}"
    "table{border-collapse:collapse;font-variant-numeric:tabular-nums}"
    "td,th{border:1px solid #ccc;padding:2px 8px;text-align:right}"
    "td:first-child,th:first-child,.properties td{text-align:left}"
    ".properties th{text-align:left;font-weight:normal;color:#555}";

}  // namespace

std::string EscapeHtml(const std::string& text) {
  std::string escaped;
  for (const char c : text) {
    switch (c) {
      case '&':
        escaped += "&amp;";
        break;
      case '<':
        escaped += "&lt;";
        break;
      case '>':
        escaped += "&gt;";
        break;
      case '"':
        escaped += "&quot;";
        break;
      default:
        escaped += c;
    }
  }
  return escaped;
}

std::string PropertyTable(const std::string& heading,
                          const Properties& properties) {
  if (properties.empty()) return "";
  std::string table = "<table class=\"properties\">\n";
  if (!heading.empty()) {
    table = absl::StrCat("<h2>", EscapeHtml(heading), "</h2>\n", table);
  }
  for (const auto& [name, value] : properties) {
    absl::StrAppend(&table, "<tr><th>", EscapeHtml(name), "</th><td>",
                    EscapeHtml(value), "</td></tr>\n");
  }
  return table + "</table>\n";
}

std::string ChartSection(const Chart& chart) {
  return absl::StrCat("<h2>", EscapeHtml(chart.title), "</h2>\n",
                      ChartSvg(chart));
}

std::string HtmlPage(const std::string& title, const std::string& body) {
  const std::string escaped = EscapeHtml(title);
  return absl::StrCat(
      "<!DOCTYPE html>\n<html lang=\"en\"><head><meta charset=\"utf-8\">\n"
      "<style>",
      kStyle, ChartStyle(), "</style>\n<title>", escaped,
      "</title></head><body>\n<h1>", escaped, "</h1>\n", body,
      "</body></html>\n");
}

}  // namespace hvdlite::support
