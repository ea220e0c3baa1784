#include "tools/doctor/cpu_list.h"

#include <sched.h>

#include "absl/strings/ascii.h"
#include "absl/strings/numbers.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_split.h"

namespace hvdlite::doctor {

std::vector<int> ParseCpuList(absl::string_view text) {
  std::vector<int> cpus;
  for (absl::string_view range :
       absl::StrSplit(absl::StripAsciiWhitespace(text), ',')) {
    const std::pair<absl::string_view, absl::string_view> ends =
        absl::StrSplit(range, absl::MaxSplits('-', 1));
    int first = 0;
    if (!absl::SimpleAtoi(ends.first, &first)) continue;
    int last = first;
    if (!ends.second.empty() && !absl::SimpleAtoi(ends.second, &last)) continue;
    for (int cpu = first; cpu <= last; ++cpu) cpus.push_back(cpu);
  }
  return cpus;
}

std::string FormatCpuList(const std::vector<int>& cpus) {
  std::string text;
  for (size_t first = 0; first < cpus.size();) {
    size_t last = first;
    while (last + 1 < cpus.size() && cpus[last + 1] == cpus[last] + 1) ++last;
    absl::StrAppend(&text, text.empty() ? "" : ",", cpus[first]);
    if (last > first) absl::StrAppend(&text, "-", cpus[last]);
    first = last + 1;
  }
  return text;
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

}  // namespace hvdlite::doctor
