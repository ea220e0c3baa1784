// The variables that all ranks of a job have in common.
#pragma once

#include <string>
#include <vector>

#include "tools/hvdliterun/plan/allocator.h"
#include "tools/hvdliterun/plan/presets.h"
#include "tools/hvdliterun/plan/variables.h"
#include "tools/support/linked_libraries.h"

namespace hvdlite::launch {

struct JobChoices {
  const Preset* preset = nullptr;     // or none
  std::vector<Variable> flags = {};   // --set, and hvdlite's knobs
  std::vector<OpenMpRuntime> openmp;  // that the program links
  // It can be looked into, and does not link Fujitsu's large-page library.
  bool lacks_large_page_library = false;
  Allocator allocator = Allocator::kDefault;
  std::string allocator_library = {};
  bool huge_pages = false;
};

// The runtime that settings are made for: the one that is linked; kUnknown if
// there are several (what all of them know is set, then).
OpenMpRuntime RuntimeOf(const std::vector<OpenMpRuntime>& linked);

// In the order of precedence: flags, the user's KMP_* in libgomp's words, the
// preset, MPIs that would bind ranks once more, the allocator. Notes say what
// was translated, and what does nothing.
void AddJobVariables(const JobChoices& choices, Variables& variables);

}  // namespace hvdlite::launch
