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
};

std::vector<Finding> JudgeVariables(const base::Environment& environment,
                                    const Readers& readers);

// What libgomp takes instead of a KMP_ variable with this value; empty: there
// is nothing like it.
std::string GnuInsteadOfKmp(const std::string& name, const std::string& value);

}  // namespace hvdlite::doctor
