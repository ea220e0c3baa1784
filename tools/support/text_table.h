// Tables for terminals and for other programs.
#pragma once

#include <string>
#include <vector>

namespace hvdlite::support {

// Columns padded to their widest cell, two blanks apart, a rule below the
// titles; rows have as many cells as there are titles.
std::string TextTable(const std::vector<std::string>& titles,
                      const std::vector<std::vector<std::string>>& rows);

// RFC 4180, with '\n' at the ends of lines.
std::string CsvTable(const std::vector<std::string>& titles,
                     const std::vector<std::vector<std::string>>& rows);

}  // namespace hvdlite::support
