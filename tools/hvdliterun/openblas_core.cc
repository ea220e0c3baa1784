#include "tools/hvdliterun/openblas_core.h"

#include <dlfcn.h>
#include <sys/wait.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <fstream>
#include <sstream>

#include "absl/strings/ascii.h"
#include "absl/strings/match.h"
#include "absl/strings/str_split.h"
#include "base/descriptor.h"
#include "tools/hvdliterun/child_process.h"

namespace hvdlite::launch {
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

// In the child: writes the name of the library's kernels.
[[noreturn]] void TellCore(const std::string& library, int descriptor) {
  void* handle = dlopen(library.c_str(), RTLD_NOW | RTLD_LOCAL);
  if (handle != nullptr) {
    auto* name =
        reinterpret_cast<char* (*)()>(dlsym(handle, "openblas_get_corename"));
    if (name != nullptr) WriteAll(descriptor, name());
  }
  _exit(0);
}

}  // namespace

std::string BetterOpenBlasCore(absl::string_view core,
                               const std::set<std::string>& flags) {
  if (std::find(kOldCores.begin(), kOldCores.end(), core) == kOldCores.end()) {
    return "";
  }
  if (HasAll(flags, {"avx512f", "avx512bw", "avx512dq", "avx512vl"})) {
    return "SkylakeX";
  }
  return HasAll(flags, {"avx2", "fma"}) ? "Haswell" : "";
}

std::set<std::string> ProcessorFlags(absl::string_view cpuinfo) {
  for (const absl::string_view line : absl::StrSplit(cpuinfo, '\n')) {
    const std::pair<absl::string_view, absl::string_view> sides =
        absl::StrSplit(line, absl::MaxSplits(':', 1));
    if (absl::StripAsciiWhitespace(sides.first) == "flags") {
      return absl::StrSplit(sides.second, ' ', absl::SkipWhitespace());
    }
  }
  return {};
}

std::string BetterOpenBlasCoreHere(const std::string& library) {
  int ends[2] = {-1, -1};
  if (pipe(ends) != 0) return "";
  const base::Descriptor reader(ends[0]);
  base::Descriptor writer(ends[1]);
  const pid_t child = fork();
  if (child == 0) TellCore(library, writer.get());
  writer = base::Descriptor();
  std::string core;
  char buffer[128];
  ssize_t count = 0;
  while (child > 0 &&
         (count = read(reader.get(), buffer, sizeof(buffer))) > 0) {
    core.append(buffer, static_cast<size_t>(count));
  }
  if (child > 0) waitpid(child, nullptr, 0);
  std::ifstream file("/proc/cpuinfo");
  std::stringstream cpuinfo;
  cpuinfo << file.rdbuf();
  return BetterOpenBlasCore(core, ProcessorFlags(cpuinfo.str()));
}

}  // namespace hvdlite::launch
