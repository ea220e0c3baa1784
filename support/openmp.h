// OpenMP runtimes: which ones a program links, and what settings of LLVM's and
// Intel's (KMP_*) mean to GNU's, which does not know them.
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
  kUnknown,  // the program could not be looked into
};

absl::string_view OpenMpRuntimeName(OpenMpRuntime runtime);
absl::StatusOr<OpenMpRuntime> ParseOpenMpRuntime(absl::string_view name);

// All that are linked, by their libraries' names; more than one is trouble.
std::vector<OpenMpRuntime> OpenMpRuntimesOf(
    const std::vector<Library>& libraries);

struct KmpTranslation {
  // What to set instead; empty if libgomp has nothing of the kind.
  std::vector<std::pair<std::string, std::string>> variables;
  // What is lost, or why nothing is set; may be empty.
  std::string remark;
};

// `name` begins with "KMP_". Sources: the documentation of both runtimes;
// libgomp's env.c (100,000 rounds of a waiting thread are about 1 ms).
KmpTranslation TranslateKmp(absl::string_view name, absl::string_view value);

}  // namespace hvdlite::support
