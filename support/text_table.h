// Tables for terminals and for other programs.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "absl/strings/string_view.h"

namespace hvdlite::support {

inline constexpr size_t kTextTableWidth = 109;

struct TextTableForm {
  // With some, a table wider than kTextTableWidth goes on below, after so many
  // columns once more.
  size_t keys = 0;
  bool has_totals = false;  // in the last row: a rule above it, too
  // Titles begin with '#', which makes comments of them for programs that read
  // the rows; there are no rules then.
  bool titles_are_comments = false;
};

// Columns padded to their widest cell, those of numbers on the left, two blanks
// apart, a rule below the titles; rows have as many cells as there are titles,
// in UTF-8. Titles take two lines where kTextTableWidth is enough for these
// only.
std::string TextTable(const std::vector<std::string>& titles,
                      const std::vector<std::vector<std::string>>& rows,
                      const TextTableForm& form = {});

// `text` after `head`, cut between words into lines of at most `width`, each
// with its end; all but the first begin with as many blanks as `head` is
// wide. A longer word has a line of its own. A head of more than half of a line
// has, too; the text stands four blanks in, below it.
std::string Wrapped(const std::string& text, const std::string& head = "",
                    size_t width = kTextTableWidth);

// "1 rank", "2 ranks".
std::string Counted(int64_t count, absl::string_view noun);

// Four digits, but all of those before the point: "0.01234", "12.34", "19812".
std::string NumberText(double number);

// RFC 4180, with '\n' at the ends of lines.
std::string CsvTable(const std::vector<std::string>& titles,
                     const std::vector<std::vector<std::string>>& rows);

}  // namespace hvdlite::support
