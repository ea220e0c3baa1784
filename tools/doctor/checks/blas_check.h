// Judges which BLAS runs.
#pragma once

#include <set>
#include <string>

#include "absl/strings/string_view.h"
#include "tools/doctor/blas_library.h"
#include "tools/doctor/finding.h"

namespace hvdlite::doctor {

struct BlasSurroundings {
  std::set<std::string> cpu_flags;
  std::string cpu_implementer = "";  // of Arm: "0x46" is Fujitsu
  std::string library_path = "";     // LD_LIBRARY_PATH
  bool openmp = true;                // an OpenMP runtime is there, too
  std::string program = "";          // whose BLAS it is; empty: unknown
};

Finding JudgeBlas(const BlasFacts& facts, const BlasSurroundings& around);

// How to get away from the reference BLAS in `file`.
std::string ReferenceBlasRemedy(const std::string& file,
                                const std::string& library_path);

}  // namespace hvdlite::doctor
