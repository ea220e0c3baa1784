#include "tools/support/cpu_list.h"

#include <sched.h>

#include <algorithm>
#include <set>

#include "absl/strings/ascii.h"
#include "absl/strings/numbers.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_split.h"

namespace hvdlite::base {

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

std::vector<int> AllowedCpus() {
  // The machine may have more CPUs than fit into one cpu_set_t.
  for (int count = CPU_SETSIZE; count <= 64 * CPU_SETSIZE; count *= 2) {
    cpu_set_t* set = CPU_ALLOC(count);
    const size_t bytes = CPU_ALLOC_SIZE(count);
    CPU_ZERO_S(bytes, set);
    const bool fits = sched_getaffinity(0, bytes, set) == 0;
    std::vector<int> cpus;
    for (int cpu = 0; fits && cpu < count; ++cpu) {
      if (CPU_ISSET_S(cpu, bytes, set)) cpus.push_back(cpu);
    }
    CPU_FREE(set);
    if (fits) return cpus;
  }
  return {};
}

}  // namespace hvdlite::base
