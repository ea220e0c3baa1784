// What one core could do.
#pragma once

#include <cstdint>
#include <string>

namespace hvdlite::doctor {

// Single precision.
struct CorePeak {
  double ghz = 0;       // 0: cannot be measured on this architecture
  int64_t lanes = 0;    // floats in a vector
  int64_t units = 0;    // vector units that multiply and add
  std::string vectors;  // "AVX3"

  double gflops() const {
    return ghz * 2 * static_cast<double>(lanes) * static_cast<double>(units);
  }
};

// Measures the clock (by a chain of instructions that take one cycle each) and
// how many vector multiply-adds a cycle takes; some 50 ms of CPU time. On the
// core that the calling thread is on.
CorePeak MeasureCorePeak();

// How many units do `per_cycle` vector multiply-adds per cycle: the nearest
// whole number, 1 at least.
int64_t UnitsOf(double per_cycle);

// Cycles per second of CPU time, in 10^9; 0 where the chain is not known.
double MeasureGhz();

}  // namespace hvdlite::doctor
