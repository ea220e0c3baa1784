// Tables for terminals (text) and for other programs (CSV).
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "absl/strings/string_view.h"

namespace hvdlite::support {

inline constexpr size_t kTextTableWidth = 109;

struct TextTableForm {
  // If above 0, a table wider than kTextTableWidth continues below, and repeats
  // its first `keys` columns there.
  size_t keys = 0;
  bool has_totals = false;  // a rule above the last row
  // Titles begin with '#', so that programs can read the rows and skip the
  // titles; there are no rules.
  bool titles_are_comments = false;
};

// A table with columns padded to their widest cell and two blanks between them,
// numbers aligned right, and a rule below the titles. Each row has as many
// cells as there are titles, in UTF-8. Titles take two lines only if this makes
// the table fit into kTextTableWidth.
std::string TextTable(const std::vector<std::string>& titles,
                      const std::vector<std::vector<std::string>>& rows,
                      const TextTableForm& form = {});

// `text` after `head`, wrapped between words into lines of at most `width`.
// Further lines are indented by the width of `head`. A longer word has its own
// line. A head longer than half a line also has its own line, and the text is
// then indented by four blanks.
std::string Wrapped(const std::string& text, const std::string& head = "",
                    size_t width = kTextTableWidth);

// "1 rank", "2 ranks".
std::string Counted(int64_t count, absl::string_view noun);

// Four significant digits, but all digits before the point: "0.01234", "12.34",
// "19812".
std::string NumberText(double number);

// RFC 4180, with '\n' as line end.
std::string CsvTable(const std::vector<std::string>& titles,
                     const std::vector<std::vector<std::string>>& rows);

}  // namespace hvdlite::support
