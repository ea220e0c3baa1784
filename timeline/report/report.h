// What the viewer has to say, as tables, and its forms: text, CSV, JSON.
#pragma once

#include <cstddef>
#include <cstdint>
#include <string>
#include <utility>
#include <vector>

#include "absl/strings/string_view.h"

namespace hvdlite::timeline {

// A value of a table: a text, or a number as it is to be read.
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
  bool has_totals = false;  // in the last row
  // As text, a wide table goes on below after so many columns once more.
  size_t keys = 1;
};

// Lines of text and tables. JSON and CSV have the tables alone.
class Report {
 public:
  void AddLine(std::string line) { items_.push_back({std::move(line), -1}); }
  // Words, wrapped; lines after the first stand under `text`.
  void AddProse(absl::string_view head, absl::string_view text);
  void AddTable(Table table);
  // Of a table that lines tell as text already: for CSV and JSON alone.
  void AddData(Table table) { tables_.push_back(std::move(table)); }

  const std::vector<Table>& tables() const { return tables_; }

  std::string Text() const;
  // One table after the other, an empty line between them (RFC 4180).
  std::string Csv() const;
  // {"NAME": [{"COLUMN": value, ...}, ...], ...}
  std::string Json() const;

 private:
  struct Item {
    std::string line;
    int table;  // -1: it is a line
  };

  std::vector<Item> items_;
  std::vector<Table> tables_;
};

// `text` with what would disturb a terminal (control characters) replaced by
// '?'.
std::string Printable(absl::string_view text);

}  // namespace hvdlite::timeline
