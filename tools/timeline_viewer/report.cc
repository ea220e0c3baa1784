#include "tools/timeline_viewer/report.h"

#include <algorithm>
#include <cstddef>
#include <utility>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_format.h"
#include "absl/strings/str_join.h"
#include "absl/strings/str_replace.h"
#include "absl/strings/str_split.h"
#include "timeline/trace_format.h"

namespace hvdlite::timeline_viewer {
namespace {

// Characters on the screen: bytes that do not continue a UTF-8 character.
size_t Width(absl::string_view text) {
  return static_cast<size_t>(std::count_if(
      text.begin(), text.end(),
      [](char c) { return (static_cast<unsigned char>(c) & 0xc0) != 0x80; }));
}

// Texts are aligned left, numbers right.
std::string TextOf(const Table& table) {
  std::vector<size_t> widths(table.columns.size());
  std::vector<bool> is_number(table.columns.size(), false);
  for (size_t i = 0; i < widths.size(); ++i) {
    widths[i] = Width(table.columns[i]);
    for (const auto& row : table.rows) {
      widths[i] = std::max(widths[i], Width(row[i].text));
      is_number[i] = is_number[i] || row[i].is_number;
    }
  }
  size_t table_width = widths.empty() ? 0 : 2 * (widths.size() - 1);
  for (const size_t width : widths) table_width += width;
  const std::string rule = std::string(table_width, '-') + "\n";
  std::string text;
  const auto add = [&](size_t i, absl::string_view value) {
    const std::string padding(widths[i] - Width(value), ' ');
    if (i > 0) text += "  ";
    if (is_number[i]) {
      absl::StrAppend(&text, padding, value);
    } else if (i + 1 == widths.size()) {
      absl::StrAppend(&text, value);
    } else {
      absl::StrAppend(&text, value, padding);
    }
  };
  for (size_t i = 0; i < widths.size(); ++i) add(i, table.columns[i]);
  absl::StrAppend(&text, "\n", rule);
  for (size_t r = 0; r < table.rows.size(); ++r) {
    if (table.has_totals && r + 1 == table.rows.size()) text += rule;
    for (size_t i = 0; i < widths.size(); ++i) {
      add(i, Printable(table.rows[r][i].text));
    }
    text += "\n";
  }
  return text;
}

std::string CsvField(const std::string& text) {
  if (text.find_first_of("\",\r\n") == std::string::npos) return text;
  return absl::StrCat("\"", absl::StrReplaceAll(text, {{"\"", "\"\""}}), "\"");
}

}  // namespace

Cell::Cell(int64_t value) : text(absl::StrCat(value)), is_number(true) {}

Cell Cell::Number(double value, int decimals) {
  Cell cell(absl::StrFormat("%.*f", decimals, value));
  cell.is_number = true;
  return cell;
}

Cell Cell::Milliseconds(double time_ns) { return Number(time_ns / 1e6, 3); }

Cell Cell::Percent(double share) { return Number(share * 100, 1); }

void Report::AddProse(absl::string_view head, absl::string_view text) {
  constexpr size_t kColumns = 100;
  const std::string indent(Width(head), ' ');
  std::string line(head);
  bool is_empty = true;  // but for its head
  for (const absl::string_view word : absl::StrSplit(text, ' ')) {
    if (!is_empty && Width(line) + 1 + Width(word) > kColumns) {
      AddLine(std::exchange(line, indent));
      is_empty = true;
    }
    absl::StrAppend(&line, is_empty ? "" : " ", word);
    is_empty = false;
  }
  AddLine(std::move(line));
}

void Report::AddTable(Table table) {
  items_.push_back({"", static_cast<int>(tables_.size())});
  tables_.push_back(std::move(table));
}

std::string Report::Text() const {
  std::string text;
  for (const Item& item : items_) {
    if (item.table < 0) {
      absl::StrAppend(&text, Printable(item.line), "\n");
    } else {
      text += TextOf(tables_[static_cast<size_t>(item.table)]);
    }
  }
  return text;
}

std::string Report::Csv() const {
  std::string text;
  const auto append = [&text](const auto& fields, auto field_of) {
    text +=
        absl::StrJoin(fields, ",", [&](std::string* out, const auto& field) {
          out->append(CsvField(field_of(field)));
        });
    text += "\n";
  };
  for (const Table& table : tables_) {
    if (!text.empty()) text += "\n";
    append(table.columns, [](const std::string& name) { return name; });
    for (const auto& row : table.rows) {
      append(row, [](const Cell& cell) { return cell.text; });
    }
  }
  return text;
}

std::string Report::Json() const {
  std::string text = "{";
  for (size_t t = 0; t < tables_.size(); ++t) {
    const Table& table = tables_[t];
    text += t == 0 ? "\n" : ",\n";
    timeline::AppendJsonString(table.name, &text);
    text += ": [";
    for (size_t r = 0; r < table.rows.size(); ++r) {
      text += r == 0 ? "\n  {" : ",\n  {";
      for (size_t i = 0; i < table.columns.size(); ++i) {
        if (i > 0) text += ", ";
        timeline::AppendJsonString(table.columns[i], &text);
        text += ": ";
        const Cell& cell = table.rows[r][i];
        if (cell.is_number) {
          text += cell.text;
        } else {
          timeline::AppendJsonString(cell.text, &text);
        }
      }
      text += "}";
    }
    text += "]";
  }
  return text + "\n}\n";
}

std::string Printable(absl::string_view text) {
  std::string printable(text);
  std::replace_if(
      printable.begin(), printable.end(),
      [](char c) {
        return static_cast<unsigned char>(c) < 0x20 || c == '\x7f';
      },
      '?');
  return printable;
}

}  // namespace hvdlite::timeline_viewer
