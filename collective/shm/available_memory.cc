#include "collective/shm/available_memory.h"

#include <unistd.h>

#include <algorithm>
#include <cstdint>
#include <fstream>
#include <initializer_list>
#include <limits>
#include <optional>
#include <vector>

#include "absl/algorithm/container.h"
#include "absl/strings/numbers.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_split.h"
#include "absl/strings/string_view.h"

namespace hvdlite::collective {
namespace {

constexpr uint64_t kNoLimit = std::numeric_limits<uint64_t>::max();

// Nothing where there is no such file, or "max" in it.
std::optional<uint64_t> NumberIn(const std::string& path) {
  std::ifstream file(path);
  std::string word;
  uint64_t number = 0;
  if (!(file >> word) || !absl::SimpleAtoi(word, &number)) return std::nullopt;
  return number;
}

// The sum of the lines "<name> <number>" of the given names.
uint64_t SumOfLines(const std::string& path,
                    std::initializer_list<absl::string_view> names) {
  std::ifstream file(path);
  std::string name;
  uint64_t sum = 0;
  for (uint64_t number = 0; file >> name >> number;) {
    if (absl::c_linear_search(names, name)) sum += number;
  }
  return sum;
}

uint64_t Left(uint64_t limit, uint64_t used, uint64_t reclaimable) {
  used -= std::min(used, reclaimable);
  return limit - std::min(limit, used);
}

// What the limit of one cgroup leaves.
uint64_t LeftInVersion2(const std::string& group) {
  const auto limit = NumberIn(group + "/memory.max");
  const auto used = NumberIn(group + "/memory.current");
  if (!limit.has_value() || !used.has_value()) return kNoLimit;
  return Left(*limit, *used,
              SumOfLines(group + "/memory.stat",
                         {"active_file", "inactive_file", "slab_reclaimable"}));
}

uint64_t LeftInVersion1(const std::string& group) {
  const auto limit = NumberIn(group + "/memory.limit_in_bytes");
  const auto used = NumberIn(group + "/memory.usage_in_bytes");
  if (!limit.has_value() || !used.has_value()) return kNoLimit;
  return Left(*limit, *used,
              SumOfLines(group + "/memory.stat",
                         {"total_active_file", "total_inactive_file"}));
}

uint64_t LeftInCgroups(const std::string& root) {
  uint64_t left = kNoLimit;
  std::ifstream groups(root + "/proc/self/cgroup");
  for (std::string line; std::getline(groups, line);) {
    // "4:memory:/job/task" or, version 2, "0::/job/task".
    const std::vector<std::string> words =
        absl::StrSplit(line, absl::MaxSplits(':', 2));
    if (words.size() != 3) continue;
    const bool version2 = words[1].empty();
    const std::vector<absl::string_view> controllers =
        absl::StrSplit(words[1], ',');
    if (!version2 && !absl::c_linear_search(controllers, "memory")) continue;
    // The group and those above it. In a container the mount may begin at the
    // group itself, so that only its topmost level can be read.
    const std::string mount =
        absl::StrCat(root, "/sys/fs/cgroup", version2 ? "" : "/memory");
    std::string path = words[2] == "/" ? "" : words[2];
    while (true) {
      left = std::min(left, version2 ? LeftInVersion2(mount + path)
                                     : LeftInVersion1(mount + path));
      if (path.empty()) break;
      const size_t slash = path.rfind('/');
      path.resize(slash == std::string::npos ? 0 : slash);
    }
  }
  return left;
}

// What the system says can be had without swapping; all that there is where it
// does not say.
uint64_t LeftInSystem(const std::string& root) {
  std::ifstream meminfo(root + "/proc/meminfo");
  for (std::string line; std::getline(meminfo, line);) {
    const std::vector<absl::string_view> words =
        absl::StrSplit(line, ' ', absl::SkipEmpty());
    uint64_t kilobytes = 0;
    if (words.size() >= 2 && words[0] == "MemAvailable:" &&
        absl::SimpleAtoi(words[1], &kilobytes)) {
      return kilobytes << 10;
    }
  }
  return static_cast<uint64_t>(sysconf(_SC_PHYS_PAGES)) *
         static_cast<uint64_t>(sysconf(_SC_PAGESIZE));
}

}  // namespace

size_t AvailableMemory(const std::string& root) {
  return std::min(LeftInSystem(root), LeftInCgroups(root));
}

}  // namespace hvdlite::collective
