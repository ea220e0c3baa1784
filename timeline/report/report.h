// A report of the viewer: lines and tables, written as text, CSV or JSON.
#pragma once

#include <cstddef>
#include <cstdint>
#include <string>
#include <utility>
#include <vector>

#include "absl/strings/string_view.h"

namespace hvdlite::timeline {

// A value of a table: text, or a number in its final format.
struct Cell {
  Cell(std::string value) : text(std::move(value)) {}  // NOLINT: implicit
  Cell(absl::string_view value) : text(value) {}       // NOLINT: implicit
  Cell(const char* value) : text(value) {}             // NOLINT: implicit
  Cell(int64_t value);                                 // NOLINT: implicit
  static Cell Number(double value, int decimals);
  static Cell Milliseconds(double time_ns);  // three decimals
  static Cell Percent(double share);         // one decimal

  std::string text;
  bool is_number = false;
};

struct Table {
  std::string name;  // for JSON, such as "steps"
  std::vector<std::string> columns;
  std::vector<std::vector<Cell>> rows;
  bool has_totals = false;  // the last row has totals
  // Text splits a wide table into several; each repeats this many first
  // columns.
  size_t keys = 1;
};

// Lines of text and tables. JSON and CSV contain only the tables.
class Report {
 public:
  void AddLine(std::string line) { items_.push_back({std::move(line), -1}); }
  // Adds wrapped text; lines after the first are indented by `head`.
  void AddProse(absl::string_view head, absl::string_view text);
  void AddTable(Table table);
  // Adds a table only to CSV and JSON; the text shows it as lines.
  void AddData(Table table) { tables_.push_back(std::move(table)); }

  const std::vector<Table>& tables() const { return tables_; }

  std::string Text() const;
  // The tables (RFC 4180), with an empty line between them.
  std::string Csv() const;
  // {"NAME": [{"COLUMN": value, ...}, ...], ...}
  std::string Json() const;

 private:
  struct Item {
    std::string line;
    int table;  // index; -1: this is a line
  };

  std::vector<Item> items_;
  std::vector<Table> tables_;
};

// `text` with control characters replaced by '?': they would disturb a
// terminal.
std::string Printable(absl::string_view text);

}  // namespace hvdlite::timeline
