// Judges how fast matrix products are.
#pragma once

#include <string>
#include <vector>

#include "tools/doctor/finding.h"

namespace hvdlite::doctor {

// Of one rank: one thread, all ranks at once.
struct BlasSpeed {
  double gflops = 0;       // per second of CPU time; 0: there is no BLAS
  double peak_gflops = 0;  // of its core; 0: unknown
  std::string core = "";   // "2.95 GHz, 16 floats (AVX3), 2 units"
};

// By rank.
std::vector<Finding> JudgeBlasSpeed(const std::vector<BlasSpeed>& of_rank);

}  // namespace hvdlite::doctor
