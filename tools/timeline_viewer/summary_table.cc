#include "tools/timeline_viewer/summary_table.h"

#include <algorithm>
#include <array>
#include <cstddef>
#include <cstdint>
#include <vector>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_format.h"

namespace hvdlite::timeline_viewer {
namespace {

using timeline::NameSummary;
using timeline::TraceSummary;

constexpr size_t kColumns = 5;
using Row = std::array<std::string, kColumns>;

std::string Milliseconds(double time_ns) {
  return absl::StrFormat("%.3f", time_ns / 1e6);
}

Row MakeRow(const std::string& name, const NameSummary& summary) {
  return {Printable(name), Milliseconds(static_cast<double>(summary.wall_ns)),
          Milliseconds(static_cast<double>(summary.self_ns)),
          Milliseconds(summary.average_wall_ns()),
          absl::StrCat(summary.occurrences)};
}

// Larger values first.
int64_t SortValue(const NameSummary& summary, SortBy sort_by) {
  switch (sort_by) {
    case SortBy::kSelf:
      return summary.self_ns;
    case SortBy::kWall:
      return summary.wall_ns;
    case SortBy::kCount:
      return summary.occurrences;
    case SortBy::kName:
      break;
  }
  return 0;
}

// Characters on the screen: bytes that do not continue a UTF-8 character.
size_t Width(const std::string& text) {
  return static_cast<size_t>(std::count_if(
      text.begin(), text.end(),
      [](char c) { return (static_cast<unsigned char>(c) & 0xc0) != 0x80; }));
}

}  // namespace

std::string RenderTable(const TraceSummary& summary, SortBy sort_by) {
  std::vector<NameSummary> names = summary.names;  // sorted by name
  std::stable_sort(names.begin(), names.end(),
                   [sort_by](const NameSummary& a, const NameSummary& b) {
                     return SortValue(a, sort_by) > SortValue(b, sort_by);
                   });
  std::vector<Row> rows = {{"Name", "Wall Duration (ms)", "Self time (ms)",
                            "Average Wall Duration (ms)", "Occurrences"}};
  for (const NameSummary& name : names) {
    rows.push_back(MakeRow(name.name.empty() ? "(no name)" : name.name, name));
  }
  rows.push_back(MakeRow("Totals", summary.totals));

  std::array<size_t, kColumns> widths = {};
  for (const Row& row : rows) {
    for (size_t i = 0; i < kColumns; ++i) {
      widths[i] = std::max(widths[i], Width(row[i]));
    }
  }
  size_t table_width = 2 * (kColumns - 1);
  for (const size_t width : widths) table_width += width;
  const std::string rule = std::string(table_width, '-') + "\n";

  std::string table;
  for (size_t r = 0; r < rows.size(); ++r) {
    if (r + 1 == rows.size()) table += rule;
    for (size_t i = 0; i < kColumns; ++i) {
      const std::string padding(widths[i] - Width(rows[r][i]), ' ');
      if (i == 0) {
        absl::StrAppend(&table, rows[r][i], padding);
      } else {
        absl::StrAppend(&table, "  ", padding, rows[r][i]);
      }
    }
    table += "\n";
    if (r == 0) table += rule;
  }
  return table;
}

std::string Printable(const std::string& text) {
  std::string printable = text;
  std::replace_if(
      printable.begin(), printable.end(),
      [](char c) {
        return static_cast<unsigned char>(c) < 0x20 || c == '\x7f';
      },
      '?');
  return printable;
}

}  // namespace hvdlite::timeline_viewer
