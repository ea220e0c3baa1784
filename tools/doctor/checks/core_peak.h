// What one core could do: its clock, and multiply-adds in registers, at the
// width of this CPU's vectors.
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

// Multiply-adds in registers, at the width of this CPU's vectors.
struct FmaLoopKind {
  std::string vectors;     // of Highway's targets: "AVX3", "SVE"
  int64_t lanes = 0;       // floats in a vector
  int64_t chains_few = 0;  // independent sums of the two loops
  int64_t chains_many = 0;
};
FmaLoopKind ThisCpusFmaLoop();

// Runs a loop with so many chains `rounds` times: each round is one vector
// multiply-add per chain. The units are full where the chains are no fewer than
// latency times units, and fit into the registers: one loop is for CPUs with 16
// of them, one for those with 32. Returns floating-point operations done.
double RunFewChains(int64_t rounds);
double RunManyChains(int64_t rounds);

}  // namespace hvdlite::doctor
