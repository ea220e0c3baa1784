// Judges environment variables that do nothing.
#pragma once

#include <set>
#include <string>
#include <vector>

#include "base/environment.h"
#include "tools/doctor/finding.h"

namespace hvdlite::doctor {

// What would read variables.
struct Readers {
  // Families of OpenMP runtimes (OpenMpRuntime); empty: none is known, and
  // their variables are not judged.
  std::set<std::string> openmp = {};
  bool mkl = false;
  bool openblas = false;
  std::string allocator = "glibc";  // "jemalloc", "tcmalloc"
  bool large_pages = false;         // Fujitsu's libmpg
  // Whose libraries these are; empty: the doctor's own, which say little of
  // those of other programs.
  std::string program = "";
};

std::vector<Finding> JudgeVariables(const base::Environment& environment,
                                    const Readers& readers);

}  // namespace hvdlite::doctor
