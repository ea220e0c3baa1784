#include "tools/hvdliterun/cpu_list.h"

#include <algorithm>
#include <set>

#include "absl/strings/ascii.h"
#include "absl/strings/numbers.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_split.h"

namespace hvdlite::launch {

std::string FormatCpuList(std::vector<int> numbers) {
  std::sort(numbers.begin(), numbers.end());
  numbers.erase(std::unique(numbers.begin(), numbers.end()), numbers.end());
  std::string text;
  for (size_t i = 0; i < numbers.size();) {
    size_t last = i;
    while (last + 1 < numbers.size() &&
           numbers[last + 1] == numbers[last] + 1) {
      ++last;
    }
    absl::StrAppend(&text, text.empty() ? "" : ",", numbers[i]);
    if (last > i) absl::StrAppend(&text, "-", numbers[last]);
    i = last + 1;
  }
  return text;
}

absl::StatusOr<std::vector<int>> ParseCpuList(absl::string_view text) {
  constexpr int kMaxNumber = 65535;
  std::set<int> numbers;
  for (absl::string_view range :
       absl::StrSplit(text, ',', absl::SkipWhitespace())) {
    range = absl::StripAsciiWhitespace(range);
    const std::vector<absl::string_view> ends = absl::StrSplit(range, '-');
    int first = 0;
    int last = 0;
    if (ends.size() > 2 || !absl::SimpleAtoi(ends.front(), &first) ||
        !absl::SimpleAtoi(ends.back(), &last) || first < 0 || last < first ||
        last > kMaxNumber) {
      return absl::InvalidArgumentError(absl::StrCat(
          "'", range, "' in '", text, "' is no range such as 0-3 or 8"));
    }
    for (int number = first; number <= last; ++number) numbers.insert(number);
  }
  return std::vector<int>(numbers.begin(), numbers.end());
}

}  // namespace hvdlite::launch
