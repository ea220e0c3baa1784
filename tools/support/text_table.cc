#include "tools/support/text_table.h"

#include <algorithm>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "absl/strings/str_replace.h"
#include "absl/strings/str_split.h"
#include "absl/strings/string_view.h"

namespace hvdlite::support {
namespace {

using Cells = std::vector<std::string>;
using Columns = std::vector<size_t>;  // by their index

constexpr size_t kBetweenColumns = 2;

std::string Line(const Cells& cells, const Columns& columns,
                 const std::vector<size_t>& widths) {
  std::string line;
  for (const size_t column : columns) {
    absl::StrAppend(
        &line, cells[column],
        std::string(widths[column] + kBetweenColumns - cells[column].size(),
                    ' '));
  }
  line.erase(line.find_last_not_of(' ') + 1);
  return line + "\n";
}

size_t WidthOf(const Columns& columns, const std::vector<size_t>& widths) {
  size_t width = 0;
  for (const size_t column : columns) {
    width += widths[column] + (width > 0 ? kBetweenColumns : 0);
  }
  return width;
}

// The columns of each part of a table: the first `keys`, then as many as there
// is room for, but at least one. All of them without `keys`.
std::vector<Columns> PartsOf(const std::vector<size_t>& widths, size_t keys) {
  Columns key_columns;
  while (key_columns.size() < std::min(keys, widths.size())) {
    key_columns.push_back(key_columns.size());
  }
  std::vector<Columns> parts = {key_columns};
  for (size_t column = key_columns.size(); column < widths.size(); ++column) {
    Columns wider = parts.back();
    wider.push_back(column);
    if (keys > 0 && parts.back().size() > keys &&
        WidthOf(wider, widths) > kTextTableWidth) {
      wider = key_columns;
      wider.push_back(column);
      parts.push_back(wider);
    } else {
      parts.back() = wider;
    }
  }
  return parts;
}

std::string CsvCell(const std::string& cell) {
  if (cell.find_first_of(",\"\n") == std::string::npos) return cell;
  return absl::StrCat("\"", absl::StrReplaceAll(cell, {{"\"", "\"\""}}), "\"");
}

}  // namespace

std::string TextTable(const Cells& titles, const std::vector<Cells>& rows,
                      size_t keys) {
  std::vector<size_t> widths(titles.size());
  for (size_t i = 0; i < titles.size(); ++i) {
    widths[i] = titles[i].size();
    for (const Cells& row : rows) {
      widths[i] = std::max(widths[i], row[i].size());
    }
  }
  std::string table;
  for (const Columns& columns : PartsOf(widths, keys)) {
    absl::StrAppend(&table, table.empty() ? "" : "\n",
                    Line(titles, columns, widths),
                    std::string(WidthOf(columns, widths), '-'), "\n");
    for (const Cells& row : rows) {
      absl::StrAppend(&table, Line(row, columns, widths));
    }
  }
  return table;
}

std::string Wrapped(const std::string& text) {
  std::string lines;
  size_t width = 0;
  for (const absl::string_view word : absl::StrSplit(text, ' ')) {
    if (width > 0 && width + 1 + word.size() > kTextTableWidth) {
      lines += '\n';
      width = 0;
    }
    absl::StrAppend(&lines, width > 0 ? " " : "", word);
    width += word.size() + (width > 0 ? 1 : 0);
  }
  return lines + "\n";
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
