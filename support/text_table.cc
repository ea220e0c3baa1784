#include "support/text_table.h"

#include <algorithm>
#include <cmath>
#include <numeric>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_format.h"
#include "absl/strings/str_join.h"
#include "absl/strings/str_replace.h"
#include "absl/strings/str_split.h"
#include "absl/strings/string_view.h"

namespace hvdlite::support {
namespace {

using Cells = std::vector<std::string>;
using Columns = std::vector<size_t>;  // column indices

constexpr size_t kBetweenColumns = 2;
constexpr absl::string_view kComment = "# ";

// Width on the screen: counts bytes that do not continue a UTF-8 character.
size_t WidthOf(absl::string_view text) {
  return static_cast<size_t>(std::count_if(
      text.begin(), text.end(),
      [](char c) { return (static_cast<unsigned char>(c) & 0xc0) != 0x80; }));
}

// Such as "12.5", "+3 %", "(0)", "1.2 [1, 3]" or "7*"; also "-".
bool IsNumber(absl::string_view cell) {
  if (cell.empty() || cell == "-") return true;
  return cell.find_first_of("0123456789") != absl::string_view::npos &&
         cell.find_first_not_of("0123456789.,+-eE%*()[] ") ==
             absl::string_view::npos;
}

// Splits `text` into lines of at most `width`; longer words stay whole.
Cells LinesOf(absl::string_view text, size_t width) {
  Cells lines;
  for (const absl::string_view word : absl::StrSplit(text, ' ')) {
    if (!lines.empty() && WidthOf(lines.back()) + 1 + WidthOf(word) <= width) {
      absl::StrAppend(&lines.back(), " ", word);
    } else {
      lines.emplace_back(word);
    }
  }
  return lines;
}

// Splits `text` into at most `most` lines, as narrow as possible.
Cells InLines(absl::string_view text, size_t most) {
  size_t width = 0;
  Cells lines = LinesOf(text, width);
  while (lines.size() > most) lines = LinesOf(text, ++width);
  return lines;
}

struct Layout {
  Layout(const Cells& titles, const std::vector<Cells>& rows,
         bool titles_are_comments)
      : room(kTextTableWidth - (titles_are_comments ? kComment.size() : 0)),
        widths(titles.size()),
        is_number(titles.size(), true) {
    for (const Cells& row : rows) {
      for (size_t i = 0; i < widths.size(); ++i) {
        widths[i] = std::max(widths[i], WidthOf(row[i]));
        is_number[i] = is_number[i] && IsNumber(row[i]);
      }
    }
    AddTitles(titles);
  }

  size_t WidthOfAll(const Columns& columns) const {
    size_t width = 0;
    for (const size_t column : columns) {
      width += widths[column] + kBetweenColumns;
    }
    return columns.empty() ? 0 : width - kBetweenColumns;
  }

  size_t room;  // width for all columns
  // Title lines above the rule; cells without text are "".
  std::vector<Cells> heads;
  std::vector<size_t> widths;
  std::vector<bool> is_number;

 private:
  // Titles take two lines only if that makes the table fit.
  void AddTitles(const Cells& titles) {
    Columns all(titles.size());
    std::iota(all.begin(), all.end(), size_t{0});
    const std::vector<size_t> of_cells = widths;
    std::vector<Cells> lines;
    const auto lay_out = [&](size_t most) {
      lines.clear();
      for (const size_t i : all) {
        lines.push_back(InLines(titles[i], most));
        widths[i] = of_cells[i];
        for (const std::string& line : lines[i]) {
          widths[i] = std::max(widths[i], WidthOf(line));
        }
      }
      return WidthOfAll(all) <= room;
    };
    if (!lay_out(1) && !lay_out(2)) lay_out(1);
    size_t height = 0;
    for (const Cells& title : lines) height = std::max(height, title.size());
    for (size_t row = 0; row < height; ++row) {
      Cells& head = heads.emplace_back();
      for (const Cells& title : lines) {
        const size_t above = height - title.size();  // aligned at the rule
        head.push_back(row < above ? "" : title[row - above]);
      }
    }
  }
};

std::string Line(const Cells& cells, const Columns& columns,
                 const Layout& layout) {
  std::string line;
  for (const size_t column : columns) {
    const std::string& cell = cells[column];
    const std::string padding(layout.widths[column] - WidthOf(cell), ' ');
    const bool right = layout.is_number[column];
    absl::StrAppend(&line, right ? padding : "", cell, right ? "" : padding,
                    std::string(kBetweenColumns, ' '));
  }
  line.erase(line.find_last_not_of(' ') + 1);
  return line + "\n";
}

// Columns of each part of a table: the first `keys`, then as many as fit, at
// least one. Without `keys`, all columns.
std::vector<Columns> PartsOf(const Layout& layout, size_t keys) {
  const size_t all = layout.widths.size();
  Columns key_columns;
  while (key_columns.size() < std::min(keys, all)) {
    key_columns.push_back(key_columns.size());
  }
  std::vector<Columns> parts = {key_columns};
  for (size_t column = key_columns.size(); column < all; ++column) {
    Columns wider = parts.back();
    wider.push_back(column);
    if (keys > 0 && parts.back().size() > keys &&
        layout.WidthOfAll(wider) > layout.room) {
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
  if (cell.find_first_of(",\"\r\n") == std::string::npos) return cell;
  return absl::StrCat("\"", absl::StrReplaceAll(cell, {{"\"", "\"\""}}), "\"");
}

}  // namespace

std::string TextTable(const Cells& titles, const std::vector<Cells>& rows,
                      const TextTableForm& form) {
  const bool comments = form.titles_are_comments;
  const Layout layout(titles, rows, comments);
  std::string table;
  const auto add = [&table](absl::string_view margin, const std::string& line) {
    absl::StrAppend(&table, margin, line);
  };
  for (const Columns& columns : PartsOf(layout, form.keys)) {
    const std::string rule =
        comments ? "" : std::string(layout.WidthOfAll(columns), '-') + "\n";
    if (!table.empty()) add("", "\n");
    for (const Cells& head : layout.heads) {
      add(comments ? kComment : "", Line(head, columns, layout));
    }
    add("", rule);
    for (const Cells& row : rows) {
      if (form.has_totals && &row == &rows.back()) add("", rule);
      add(comments ? "  " : "", Line(row, columns, layout));
    }
  }
  return table;
}

std::string Wrapped(const std::string& text, const std::string& head,
                    size_t width) {
  const size_t most_indent = width / 2;
  constexpr size_t kLessIndent = 4;
  const bool is_short = WidthOf(head) <= most_indent;
  const size_t indent = is_short ? WidthOf(head) : kLessIndent;
  std::string lines = head;
  if (!is_short) {
    lines.erase(lines.find_last_not_of(' ') + 1);
    absl::StrAppend(&lines, "\n", std::string(indent, ' '));
  }
  size_t filled = indent;
  bool is_empty = true;  // the line after its head
  for (const absl::string_view word : absl::StrSplit(text, ' ')) {
    if (!is_empty && filled + 1 + WidthOf(word) > width) {
      absl::StrAppend(&lines, "\n", std::string(indent, ' '));
      filled = indent;
      is_empty = true;
    }
    absl::StrAppend(&lines, is_empty ? "" : " ", word);
    filled += WidthOf(word) + (is_empty ? 0 : 1);
    is_empty = false;
  }
  return lines + "\n";
}

std::string Counted(int64_t count, absl::string_view noun) {
  return absl::StrCat(count, " ", noun, count == 1 ? "" : "s");
}

std::string NumberText(double number) {
  constexpr double kFiveDigits = 9999.5;
  return std::abs(number) < kFiveDigits ? absl::StrFormat("%.4g", number)
                                        : absl::StrFormat("%.0f", number);
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
