#include "tools/hvdliterun/plan/slurm_list.h"

#include <algorithm>
#include <cstdint>
#include <limits>

#include "absl/strings/match.h"
#include "absl/strings/numbers.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_split.h"
#include "absl/strings/strip.h"
#include "base/status_macros.h"

namespace hvdlite::launch {
namespace {

constexpr size_t kMaxHosts = 1'000'000;

bool IsNumber(absl::string_view text) {
  return !text.empty() && std::all_of(text.begin(), text.end(), [](char c) {
    return c >= '0' && c <= '9';
  });
}

absl::Status TooMany(absl::string_view list) {
  return absl::InvalidArgumentError(absl::StrCat("'", list.substr(0, 200),
                                                 "' stands for more than ",
                                                 kMaxHosts, " hosts"));
}

// "01-03" -> 01 02 03, with the width of the first number; "7" -> 7.
absl::StatusOr<std::vector<std::string>> ExpandRange(absl::string_view range) {
  const std::vector<absl::string_view> ends = absl::StrSplit(range, '-');
  int64_t first = 0;
  int64_t last = 0;
  const bool good = ends.size() <= 2 && IsNumber(ends.front()) &&
                    IsNumber(ends.back()) &&
                    absl::SimpleAtoi(ends.front(), &first);
  if (!absl::SimpleAtoi(ends.back(), &last)) {
    last = std::numeric_limits<int64_t>::max();
  }
  if (!good || last < first) {
    return absl::InvalidArgumentError(
        absl::StrCat("'", range, "' is not a range such as 01-12"));
  }
  if (last - first >= static_cast<int64_t>(kMaxHosts)) return TooMany(range);
  std::vector<std::string> numbers;
  for (int64_t number = first; number <= last; ++number) {
    std::string digits = absl::StrCat(number);
    if (digits.size() < ends.front().size()) {
      digits.insert(0, ends.front().size() - digits.size(), '0');
    }
    numbers.push_back(std::move(digits));
  }
  return numbers;
}

// Expands one name with any number of brackets.
absl::StatusOr<std::vector<std::string>> ExpandName(absl::string_view name) {
  const size_t open = name.find('[');
  if (open == absl::string_view::npos) {
    if (name.empty() || absl::StrContains(name, "]")) {
      return absl::InvalidArgumentError(
          absl::StrCat("'", name, "' is not a host name"));
    }
    return std::vector<std::string>{std::string(name)};
  }
  const size_t close = name.find(']', open);
  if (close == absl::string_view::npos) {
    return absl::InvalidArgumentError(
        absl::StrCat("the bracket in '", name, "' is not closed"));
  }
  std::vector<std::string> rests = {""};
  if (close + 1 < name.size()) {
    HVDLITE_ASSIGN_OR_RETURN(rests, ExpandName(name.substr(close + 1)));
  }
  std::vector<std::string> hosts;
  for (const absl::string_view range :
       absl::StrSplit(name.substr(open + 1, close - open - 1), ',')) {
    HVDLITE_ASSIGN_OR_RETURN(const std::vector<std::string> numbers,
                             ExpandRange(range));
    if (numbers.size() > (kMaxHosts - hosts.size()) / rests.size()) {
      return TooMany(name);
    }
    for (const std::string& number : numbers) {
      for (const std::string& rest : rests) {
        hosts.push_back(absl::StrCat(name.substr(0, open), number, rest));
      }
    }
  }
  return hosts;
}

}  // namespace

absl::StatusOr<std::vector<std::string>> ExpandHostList(
    absl::string_view list) {
  std::vector<std::string> hosts;
  int depth = 0;
  size_t begin = 0;
  for (size_t i = 0; i <= list.size(); ++i) {
    if (i < list.size() && list[i] == '[') ++depth;
    if (i < list.size() && list[i] == ']') --depth;
    if (i < list.size() && (list[i] != ',' || depth > 0)) continue;
    HVDLITE_ASSIGN_OR_RETURN(const std::vector<std::string> some,
                             ExpandName(list.substr(begin, i - begin)));
    if (some.size() > kMaxHosts - hosts.size()) return TooMany(list);
    hosts.insert(hosts.end(), some.begin(), some.end());
    begin = i + 1;
  }
  return hosts;
}

absl::StatusOr<std::vector<int>> ExpandCounts(absl::string_view list) {
  std::vector<int> counts;
  for (const absl::string_view item : absl::StrSplit(list, ',')) {
    const std::vector<absl::string_view> parts =
        absl::StrSplit(item, absl::MaxSplits("(x", 1));
    int count = 0;
    int times = 1;
    bool good = absl::SimpleAtoi(parts[0], &count) && count >= 0;
    if (parts.size() == 2) {
      absl::string_view number = parts[1];
      good = good && absl::ConsumeSuffix(&number, ")") &&
             absl::SimpleAtoi(number, &times) && times > 0 &&
             times <= static_cast<int>(kMaxHosts);
    }
    if (!good) {
      return absl::InvalidArgumentError(absl::StrCat(
          "'", item, "' in '", list, "' is not a count such as 4 or 4(x3)"));
    }
    if (static_cast<size_t>(times) > kMaxHosts - counts.size()) {
      return TooMany(list);
    }
    counts.insert(counts.end(), static_cast<size_t>(times), count);
  }
  return counts;
}

}  // namespace hvdlite::launch
