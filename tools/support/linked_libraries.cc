#include "tools/support/linked_libraries.h"

#include <dlfcn.h>
#include <sys/wait.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <fstream>
#include <sstream>
#include <utility>

#include "absl/strings/ascii.h"
#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_split.h"
#include "absl/strings/strip.h"
#include "base/descriptor.h"
#include "base/status_macros.h"
#include "tools/support/child_process.h"
#include "tools/support/processor.h"

namespace hvdlite::launch {
namespace {

constexpr std::array kRuntimes = {
    std::pair(OpenMpRuntime::kNone, "none"),
    std::pair(OpenMpRuntime::kGnu, "libgomp"),
    std::pair(OpenMpRuntime::kLlvm, "libomp"),
    std::pair(OpenMpRuntime::kIntel, "libiomp5"),
    std::pair(OpenMpRuntime::kFujitsu, "libfjomp"),
    std::pair(OpenMpRuntime::kUnknown, "unknown")};

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

std::vector<LinkedLibrary> ParseLdd(absl::string_view text) {
  std::vector<LinkedLibrary> libraries;
  for (absl::string_view line :
       absl::StrSplit(text, '\n', absl::SkipWhitespace())) {
    line = absl::StripAsciiWhitespace(line);
    const std::pair<absl::string_view, absl::string_view> sides =
        absl::StrSplit(line, absl::MaxSplits(" => ", 1));
    // Without an arrow: the loader, and the kernel's own library.
    if (sides.second.empty()) continue;
    absl::string_view path = sides.second.substr(0, sides.second.find(" ("));
    if (!absl::StartsWith(path, "/")) path = "";
    libraries.push_back(
        {.name = std::string(sides.first), .path = std::string(path)});
  }
  return libraries;
}

absl::StatusOr<std::vector<LinkedLibrary>> LinkedLibrariesOf(
    const std::string& program) {
  HVDLITE_ASSIGN_OR_RETURN(const CapturedOutput output,
                           CaptureOutput({"ldd", program}));
  if (output.status != 0) {
    return absl::FailedPreconditionError(absl::StrCat(
        "ldd ", program, ": ", absl::StripAsciiWhitespace(output.text)));
  }
  return ParseLdd(output.text);
}

absl::string_view OpenMpRuntimeName(OpenMpRuntime runtime) {
  for (const auto& [value, name] : kRuntimes) {
    if (value == runtime) return name;
  }
  return "?";
}

absl::StatusOr<OpenMpRuntime> ParseOpenMpRuntime(absl::string_view text) {
  for (const auto& [value, name] : kRuntimes) {
    if (text == name) return value;
  }
  return absl::InvalidArgumentError(
      absl::StrCat("'", text, "' is no OpenMP runtime"));
}

std::vector<OpenMpRuntime> OpenMpRuntimesOf(
    const std::vector<LinkedLibrary>& libraries) {
  std::vector<OpenMpRuntime> found;
  for (const LinkedLibrary& library : libraries) {
    for (const auto& [runtime, name] : kRuntimes) {
      // "libgomp.so.1", and "libgomp-a34b3233.so.1" of Python packages.
      absl::string_view rest = library.name;
      if (absl::ConsumePrefix(&rest, name) &&
          (absl::StartsWith(rest, ".so") || absl::StartsWith(rest, "-")) &&
          std::find(found.begin(), found.end(), runtime) == found.end()) {
        found.push_back(runtime);
      }
    }
  }
  return found;
}

bool HasLargePageLibrary(const std::vector<LinkedLibrary>& libraries) {
  return std::any_of(libraries.begin(), libraries.end(),
                     [](const LinkedLibrary& library) {
                       return absl::StartsWith(library.name, "libmpg.so");
                     });
}

std::string OpenBlasCandidate(const std::vector<LinkedLibrary>& libraries) {
  for (const char* name : {"libopenblas", "libblas"}) {
    for (const LinkedLibrary& library : libraries) {
      if (absl::StartsWith(library.name, name) && !library.path.empty()) {
        return library.path;
      }
    }
  }
  // What a program opens while it runs, as Python's packages do.
  return "libblas.so.3";
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
  return base::BetterOpenBlasCore(core, base::CpuFlags(cpuinfo.str()));
}

}  // namespace hvdlite::launch
