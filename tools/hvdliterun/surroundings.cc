#include "tools/hvdliterun/surroundings.h"

#include <unistd.h>

#include <algorithm>
#include <array>
#include <filesystem>
#include <fstream>
#include <sstream>
#include <system_error>

#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_split.h"
#include "base/status_macros.h"
#include "tools/hvdliterun/binding.h"
#include "tools/hvdliterun/child_process.h"
#include "tools/hvdliterun/openblas_core.h"

namespace hvdlite::launch {
namespace {

absl::StatusOr<std::string> ReadFile(const std::string& path) {
  std::ifstream file(path);
  std::stringstream text;
  text << file.rdbuf();
  if (!file) {
    return absl::NotFoundError(absl::StrCat("cannot read ", path));
  }
  return text.str();
}

absl::StatusOr<std::string> VersionOf(const std::string& program) {
  HVDLITE_ASSIGN_OR_RETURN(const CapturedOutput output,
                           CaptureOutput({program, "--version"}));
  return output.text;
}

}  // namespace

std::string HostName() {
  char name[256] = {};
  if (gethostname(name, sizeof(name) - 1) != 0) return "?";
  return name;
}

Surroundings RealSurroundings() {
  std::error_code error;
  return {.environment = base::ProcessEnvironment(),
          .read_file = ReadFile,
          .exists =
              [](const std::string& path) {
                return access(path.c_str(), F_OK) == 0;
              },
          .machine = ThisMachine,
          .libraries = LinkedLibrariesOf,
          .version_of = VersionOf,
          .better_openblas_core = BetterOpenBlasCoreHere,
          .memory_policy = InheritedMemoryPolicy(),
          .self = std::filesystem::read_symlink("/proc/self/exe", error),
          .host_name = HostName(),
          .root = geteuid() == 0};
}

std::string PathOfProgram(const std::string& program,
                          const Surroundings& surroundings) {
  if (absl::StrContains(program, "/")) return program;
  const std::string path = surroundings.environment.get("PATH").value_or("");
  for (const absl::string_view folder : absl::StrSplit(path, ':')) {
    std::string candidate = absl::StrCat(folder, "/", program);
    if (surroundings.exists(candidate)) return candidate;
  }
  return program;
}

bool IsContainer(const Surroundings& surroundings) {
  constexpr std::array kFiles = {"/.dockerenv", "/run/.containerenv"};
  constexpr std::array kVariables = {"container", "SINGULARITY_NAME",
                                     "APPTAINER_NAME",
                                     "KUBERNETES_SERVICE_HOST"};
  return std::any_of(kFiles.begin(), kFiles.end(), surroundings.exists) ||
         std::any_of(kVariables.begin(), kVariables.end(),
                     [&](const char* name) {
                       return surroundings.environment.get(name).has_value();
                     });
}

}  // namespace hvdlite::launch
