// Judges the OpenMP runtimes of a process.
#pragma once

#include <string>
#include <vector>

#include "tools/doctor/finding.h"
#include "tools/support/libraries.h"

namespace hvdlite::doctor {

// Each has threads and variables of its own.
struct OpenMpRuntime {
  std::string
      family;  // "GNU", "LLVM" (Intel's is the same), "Fujitsu", "NVIDIA"
  std::string file;
};

// One entry per file, however many names it has.
std::vector<OpenMpRuntime> OpenMpRuntimesOf(
    const std::vector<Library>& libraries);

// `program` has them; empty: the doctor itself, which is worth a note only.
std::vector<Finding> JudgeOpenMp(const std::vector<Library>& libraries,
                                 const std::string& program);

}  // namespace hvdlite::doctor
