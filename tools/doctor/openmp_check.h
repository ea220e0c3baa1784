// Judges the OpenMP runtimes of a process.
#pragma once

#include <string>
#include <vector>

#include "tools/doctor/finding.h"
#include "tools/doctor/libraries.h"

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

// `who` has them: a program's name, or "this process".
std::vector<Finding> JudgeOpenMp(const std::vector<Library>& libraries,
                                 const std::string& who);

}  // namespace hvdlite::doctor
