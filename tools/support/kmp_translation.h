// What settings of the LLVM and Intel OpenMP runtimes (KMP_*) mean to GNU's,
// which does not know them.
#pragma once

#include <string>
#include <utility>
#include <vector>

#include "absl/strings/string_view.h"

namespace hvdlite::base {

struct KmpTranslation {
  // What to set instead; empty if libgomp has nothing of the kind.
  std::vector<std::pair<std::string, std::string>> variables;
  // What is lost, or why nothing is set; may be empty.
  std::string remark;
};

// `name` begins with "KMP_". Sources: the documentation of both runtimes;
// libgomp's env.c (100,000 rounds of a waiting thread are about 1 ms).
KmpTranslation TranslateKmp(absl::string_view name, absl::string_view value);

}  // namespace hvdlite::base
