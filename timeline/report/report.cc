#include "timeline/report/report.h"

#include <algorithm>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_format.h"
#include "absl/strings/str_split.h"
#include "absl/strings/strip.h"
#include "support/text_table.h"
#include "timeline/record/trace_format.h"

namespace hvdlite::timeline {
namespace {

std::vector<std::string> Texts(const std::vector<Cell>& row) {
  std::vector<std::string> texts;
  for (const Cell& cell : row) texts.push_back(cell.text);
  return texts;
}

std::vector<std::vector<std::string>> TextsOf(const Table& table) {
  std::vector<std::vector<std::string>> rows;
  for (const auto& row : table.rows) rows.push_back(Texts(row));
  return rows;
}

std::string TextOf(const Table& table) {
  std::vector<std::vector<std::string>> rows = TextsOf(table);
  for (auto& row : rows) {
    for (std::string& text : row) text = Printable(text);
  }
  return support::TextTable(
      table.columns, rows,
      {.keys = table.keys, .has_totals = table.has_totals});
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
  const std::string lines =
      support::Wrapped(std::string(text), std::string(head));
  for (const absl::string_view line :
       absl::StrSplit(absl::StripSuffix(lines, "\n"), '\n')) {
    AddLine(std::string(line));
  }
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
  for (const Table& table : tables_) {
    absl::StrAppend(&text, text.empty() ? "" : "\n",
                    support::CsvTable(table.columns, TextsOf(table)));
  }
  return text;
}

std::string Report::Json() const {
  std::string text = "{";
  for (size_t t = 0; t < tables_.size(); ++t) {
    const Table& table = tables_[t];
    text += t == 0 ? "\n" : ",\n";
    AppendJsonString(table.name, &text);
    text += ": [";
    for (size_t r = 0; r < table.rows.size(); ++r) {
      text += r == 0 ? "\n  {" : ",\n  {";
      for (size_t i = 0; i < table.columns.size(); ++i) {
        if (i > 0) text += ", ";
        AppendJsonString(table.columns[i], &text);
        text += ": ";
        const Cell& cell = table.rows[r][i];
        if (cell.is_number) {
          text += cell.text;
        } else {
          AppendJsonString(cell.text, &text);
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

}  // namespace hvdlite::timeline
