// Tables for terminals and for other programs.
#pragma once

#include <string>
#include <vector>

namespace hvdlite::support {

// Columns padded to their widest cell, two blanks apart, a rule below the
// titles; rows have as many cells as there are titles. With `keys`, what is
// wider than kTextTableWidth goes on below, after the first `keys` columns once
// more.
inline constexpr size_t kTextTableWidth = 109;
std::string TextTable(const std::vector<std::string>& titles,
                      const std::vector<std::vector<std::string>>& rows,
                      size_t keys = 0);

// `text`, cut between words into lines of at most kTextTableWidth, each with
// its end; a longer word has a line of its own.
std::string Wrapped(const std::string& text);

// RFC 4180, with '\n' at the ends of lines.
std::string CsvTable(const std::vector<std::string>& titles,
                     const std::vector<std::vector<std::string>>& rows);

}  // namespace hvdlite::support
