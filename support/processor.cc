#include "support/processor.h"

#include <linux/mempolicy.h>
#include <sched.h>
#include <sys/syscall.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <cerrno>
#include <cstring>
#include <initializer_list>
#include <system_error>
#include <utility>

#include "absl/strings/ascii.h"
#include "absl/strings/numbers.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_split.h"
#include "support/input_error.h"

namespace hvdlite::support {
namespace {

// OpenBLAS kernels without AVX, which all x86 servers of the last decade have.
constexpr std::array<absl::string_view, 17> kOldCores = {
    "Katmai",       "Coppermine", "Northwood",  "Prescott", "Banias", "Atom",
    "Core2",        "Penryn",     "Dunnington", "Nehalem",  "Athlon", "Opteron",
    "Opteron_SSE3", "Barcelona",  "Bobcat",     "Nano",     "Unknown"};

bool HasAll(const std::set<std::string>& flags,
            std::initializer_list<const char*> wanted) {
  return std::all_of(wanted.begin(), wanted.end(),
                     [&](const char* flag) { return flags.contains(flag); });
}

constexpr int kMaxNodes = 1024;
constexpr int kBits = 8 * sizeof(unsigned long);
constexpr int kModeBits = 0xff;  // higher bits are flags

}  // namespace

std::set<std::string> CpuFlags(absl::string_view cpuinfo) {
  for (const absl::string_view line : absl::StrSplit(cpuinfo, '\n')) {
    const std::pair<absl::string_view, absl::string_view> sides =
        absl::StrSplit(line, absl::MaxSplits(':', 1));
    const absl::string_view name = absl::StripAsciiWhitespace(sides.first);
    if (name == "flags" || name == "Features") {
      return absl::StrSplit(sides.second, ' ', absl::SkipWhitespace());
    }
  }
  return {};
}

std::string Bfloat16Instructions(const std::set<std::string>& cpu_flags) {
  std::string found;
  for (const char* flag : {"avx512_bf16", "amx_bf16", "bf16", "svebf16"}) {
    if (!cpu_flags.contains(flag)) continue;
    absl::StrAppend(&found, found.empty() ? "" : ", ", flag);
  }
  return found;
}

std::string MissingBfloat16Instructions(
    const std::set<std::string>& cpu_flags) {
  if (!Bfloat16Instructions(cpu_flags).empty()) return "";
  if (cpu_flags.contains("sse2")) return "avx512_bf16 or amx_bf16";
  return cpu_flags.contains("asimd") ? "bf16 or svebf16" : "";
}

std::string BetterOpenBlasCore(absl::string_view core,
                               const std::set<std::string>& cpu_flags) {
  if (FloatsOfOpenBlasCore(core) > 4) return "";
  if (HasAll(cpu_flags, {"avx512f", "avx512bw", "avx512dq", "avx512vl"})) {
    return "SkylakeX";
  }
  return HasAll(cpu_flags, {"avx2", "fma"}) ? "Haswell" : "";
}

int FloatsOfOpenBlasCore(absl::string_view core) {
  if (std::find(kOldCores.begin(), kOldCores.end(), core) != kOldCores.end()) {
    return 4;
  }
  return core == "SkylakeX" || core == "Cooperlake" || core == "SapphireRapids"
             ? 16
             : 8;
}

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
          "'", range, "' in '", text, "' is not a range such as 0-3 or 8"));
    }
    for (int number = first; number <= last; ++number) numbers.insert(number);
  }
  return std::vector<int>(numbers.begin(), numbers.end());
}

std::vector<int> AllowedCpus() {
  // The machine may have more CPUs than one cpu_set_t holds.
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

void BindThread(const std::vector<int>& cpus) {
  cpu_set_t set;
  CPU_ZERO(&set);
  for (const int cpu : cpus) CPU_SET(cpu, &set);
  if (sched_setaffinity(0, sizeof set, &set) != 0) {
    throw std::system_error(errno, std::generic_category(),
                            "cannot bind a process to its CPUs");
  }
}

std::vector<std::vector<int>> DivideCpus(const std::vector<int>& cpus,
                                         int64_t shares) {
  const int64_t count = std::ssize(cpus);
  if (shares > count) {
    throw InputError("--instances is " + std::to_string(shares) +
                     ", but this process may use only " +
                     std::to_string(count) +
                     " CPUs; use at most one instance per CPU");
  }
  std::vector<std::vector<int>> result;
  auto first = cpus.begin();
  for (int64_t share = 0; share < shares; ++share) {
    const auto last = first + count / shares + (share < count % shares ? 1 : 0);
    result.emplace_back(first, last);
    first = last;
  }
  return result;
}

absl::StatusOr<NumaPolicy> ThisThreadsNumaPolicy() {
  int mode = MPOL_DEFAULT;
  std::array<unsigned long, kMaxNodes / kBits> mask = {};
  if (syscall(SYS_get_mempolicy, &mode, mask.data(), kMaxNodes, nullptr, 0UL) !=
      0) {
    return absl::UnavailableError(
        absl::StrCat("cannot read the memory policy: ", std::strerror(errno)));
  }
  NumaPolicy policy = {.mode = mode & kModeBits};
  for (int node = 0; node < kMaxNodes; ++node) {
    if ((mask[static_cast<size_t>(node / kBits)] >> (node % kBits)) & 1UL) {
      policy.nodes.push_back(node);
    }
  }
  return policy;
}

std::string NumaPolicyName(const NumaPolicy& policy) {
  switch (policy.mode) {
    case MPOL_DEFAULT:
      return "default";
    case MPOL_PREFERRED:
      return policy.nodes.empty() ? "local" : "preferred";
    case MPOL_BIND:
      return "bind";
    case MPOL_INTERLEAVE:
      return "interleave";
    case MPOL_LOCAL:
      return "local";
    default:
      return absl::StrCat("number ", policy.mode);
  }
}

}  // namespace hvdlite::support
