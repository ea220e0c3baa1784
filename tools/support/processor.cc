#include "tools/support/processor.h"

#include <algorithm>
#include <array>
#include <initializer_list>
#include <utility>

#include "absl/strings/ascii.h"
#include "absl/strings/str_split.h"

namespace hvdlite::base {
namespace {

// Kernels without the AVX that every x86 server of the last decade has.
constexpr std::array<absl::string_view, 17> kOldCores = {
    "Katmai",       "Coppermine", "Northwood",  "Prescott", "Banias", "Atom",
    "Core2",        "Penryn",     "Dunnington", "Nehalem",  "Athlon", "Opteron",
    "Opteron_SSE3", "Barcelona",  "Bobcat",     "Nano",     "Unknown"};

bool HasAll(const std::set<std::string>& flags,
            std::initializer_list<const char*> wanted) {
  return std::all_of(wanted.begin(), wanted.end(),
                     [&](const char* flag) { return flags.contains(flag); });
}

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

std::string BetterOpenBlasCore(absl::string_view core,
                               const std::set<std::string>& cpu_flags) {
  if (std::find(kOldCores.begin(), kOldCores.end(), core) == kOldCores.end()) {
    return "";
  }
  if (HasAll(cpu_flags, {"avx512f", "avx512bw", "avx512dq", "avx512vl"})) {
    return "SkylakeX";
  }
  return HasAll(cpu_flags, {"avx2", "fma"}) ? "Haswell" : "";
}

}  // namespace hvdlite::base
