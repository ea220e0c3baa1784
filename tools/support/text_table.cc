#include "tools/support/text_table.h"

#include <algorithm>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "absl/strings/str_replace.h"

namespace hvdlite::support {
namespace {

using Cells = std::vector<std::string>;

std::string Line(const Cells& cells, const std::vector<size_t>& widths) {
  std::string line;
  for (size_t i = 0; i < cells.size(); ++i) {
    absl::StrAppend(&line, i == 0 ? "" : "  ", cells[i],
                    std::string(widths[i] - cells[i].size(), ' '));
  }
  line.erase(line.find_last_not_of(' ') + 1);
  return line + "\n";
}

std::string CsvCell(const std::string& cell) {
  if (cell.find_first_of(",\"\n") == std::string::npos) return cell;
  return absl::StrCat("\"", absl::StrReplaceAll(cell, {{"\"", "\"\""}}), "\"");
}

}  // namespace

std::string TextTable(const Cells& titles, const std::vector<Cells>& rows) {
  std::vector<size_t> widths(titles.size());
  for (size_t i = 0; i < titles.size(); ++i) {
    widths[i] = titles[i].size();
    for (const Cells& row : rows) {
      widths[i] = std::max(widths[i], row[i].size());
    }
  }
  size_t width = 2 * (titles.size() - 1);
  for (const size_t column : widths) width += column;
  std::string table =
      absl::StrCat(Line(titles, widths), std::string(width, '-'), "\n");
  for (const Cells& row : rows) absl::StrAppend(&table, Line(row, widths));
  return table;
}

std::string CsvTable(const Cells& titles, const std::vector<Cells>& rows) {
  const auto line = [](const Cells& cells) {
    return absl::StrCat(
        absl::StrJoin(cells, ",",
                      [](std::string* out, const std::string& cell) {
                        absl::StrAppend(out, CsvCell(cell));
                      }),
        "\n");
  };
  std::string csv = line(titles);
  for (const Cells& row : rows) absl::StrAppend(&csv, line(row));
  return csv;
}

}  // namespace hvdlite::support
