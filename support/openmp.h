// OpenMP runtimes: finds the linked ones, and translates settings of LLVM's and
// Intel's runtime (KMP_*) for GNU's, which ignores them.
#pragma once

#include <string>
#include <utility>
#include <vector>

#include "absl/status/statusor.h"
#include "absl/strings/string_view.h"
#include "support/libraries.h"

namespace hvdlite::support {

enum class OpenMpRuntime {
  kNone,     // none is linked
  kGnu,      // libgomp
  kLlvm,     // libomp
  kIntel,    // libiomp5
  kFujitsu,  // libfjomp
  kUnknown,  // the program cannot be read
};

absl::string_view OpenMpRuntimeName(OpenMpRuntime runtime);
absl::StatusOr<OpenMpRuntime> ParseOpenMpRuntime(absl::string_view name);

// All linked runtimes, found by the names of their libraries. More than one
// causes trouble.
std::vector<OpenMpRuntime> OpenMpRuntimesOf(
    const std::vector<Library>& libraries);

struct KmpTranslation {
  // What to set instead; empty if libgomp has no equivalent.
  std::vector<std::pair<std::string, std::string>> variables;
  // What is lost, or why nothing is set; may be empty.
  std::string remark;
};

// Translates variable `name`, which begins with "KMP_". Sources: the
// documentation of both runtimes; libgomp's env.c (100,000 spins take about 1
// ms).
KmpTranslation TranslateKmp(absl::string_view name, absl::string_view value);

}  // namespace hvdlite::support
