#include "tools/scaling_sweep/published_times.h"

#include <fstream>
#include <utility>

#include "absl/strings/ascii.h"
#include "absl/strings/match.h"
#include "absl/strings/numbers.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_format.h"
#include "absl/strings/str_split.h"
#include "tools/scaling_sweep/efficiency.h"
#include "tools/scaling_sweep/text_table.h"

namespace hvdlite::scaling_sweep {

absl::StatusOr<PublishedTimes> ReadPublishedTimes(const std::string& file) {
  std::ifstream stream(file);
  if (!stream) {
    return absl::NotFoundError(absl::StrCat("cannot read '", file, "'"));
  }
  PublishedTimes times;
  int number = 0;
  bool named = false;
  for (std::string line; std::getline(stream, line);) {
    ++number;
    const auto error = [&](const std::string& what) {
      return absl::InvalidArgumentError(
          absl::StrCat("'", file, "', line ", number, ": ", what));
    };
    if (line.empty()) continue;
    if (absl::StartsWith(line, "#")) {
      times.source.emplace_back(absl::StripAsciiWhitespace(line.substr(1)));
      continue;
    }
    const std::vector<std::string> cells = absl::StrSplit(line, ',');
    if (!named) {
      named = true;
      for (size_t i = 1; i < cells.size(); ++i) {
        times.columns.push_back({.name = cells[i], .seconds = {}});
      }
      if (times.columns.empty()) return error("names no columns");
      continue;
    }
    if (cells.size() != times.columns.size() + 1) {
      return error(absl::StrCat(cells.size(), " cells instead of ",
                                times.columns.size() + 1));
    }
    int n = 0;
    if (!absl::SimpleAtoi(cells[0], &n) ||
        n < (times.n.empty() ? 1 : times.n.back() + 1) ||
        (times.n.empty() && n != 1)) {
      return error(absl::StrCat("'", cells[0],
                                "' is no number above the line's before; the "
                                "first must be 1"));
    }
    times.n.push_back(n);
    for (size_t i = 1; i < cells.size(); ++i) {
      double seconds = 0;
      if (!absl::SimpleAtod(cells[i], &seconds) || !(seconds > 0)) {
        return error(
            absl::StrCat("'", cells[i], "' is no number of seconds above 0"));
      }
      times.columns[i - 1].seconds.push_back(seconds);
    }
  }
  if (times.n.empty()) {
    return absl::InvalidArgumentError(
        absl::StrCat("'", file, "' has no times in it"));
  }
  return times;
}

std::string PublishedText(const PublishedTimes& times) {
  std::string text;
  for (const std::string& line : times.source) {
    absl::StrAppend(&text, line, "\n");
  }
  std::vector<std::vector<std::string>> rows;
  for (const PublishedColumn& column : times.columns) {
    for (size_t i = 0; i < times.n.size(); ++i) {
      const double t1 = column.seconds.front();
      const double tn = column.seconds[i];
      rows.push_back(
          {column.name, absl::StrCat(times.n[i]), absl::StrFormat("%.5g", tn),
           absl::StrFormat("%.2f", t1 / tn),
           absl::StrFormat("%.2f %%",
                           100 * StrongEfficiency(t1, times.n[i], tn))});
    }
  }
  return text +
         TextTable({"column", "N", "epoch s", "speed-up",
                    absl::StrCat("efficiency (", EfficiencyLabel(STRONG), ")")},
                   rows);
}

}  // namespace hvdlite::scaling_sweep
