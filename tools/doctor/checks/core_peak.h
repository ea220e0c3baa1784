// The peak speed of one core: its clock and its vector multiply-adds, measured
// in registers.
#pragma once

#include <cstdint>
#include <string>

namespace hvdlite::doctor {

// Single precision.
struct CorePeak {
  double ghz = 0;       // 0: cannot be measured on this architecture
  int64_t lanes = 0;    // floats in a vector
  int64_t units = 0;    // vector units for multiply-adds
  std::string vectors;  // "AVX3"

  double gflops() const {
    return ghz * 2 * static_cast<double>(lanes) * static_cast<double>(units);
  }
};

// Measures the core that runs the calling thread: its clock (by a chain of
// one-cycle instructions) and its vector multiply-adds per cycle. Takes about
// 50 ms of CPU time.
CorePeak MeasureCorePeak();

// The number of units for `per_cycle` vector multiply-adds per cycle: the
// nearest integer, at least 1.
int64_t UnitsOf(double per_cycle);

// A loop of multiply-adds in registers, with the widest vectors of this CPU.
struct FmaLoopKind {
  std::string vectors;     // Highway's target: "AVX3", "SVE"
  int64_t lanes = 0;       // floats in a vector
  int64_t chains_few = 0;  // independent sums of the two loops
  int64_t chains_many = 0;
};
FmaLoopKind ThisCpusFmaLoop();

// Each runs a loop `rounds` times, with one vector multiply-add per chain in
// each round, and returns the number of floating-point operations. All units
// are busy if there are at least latency times units chains and they fit into
// the registers. RunFewChains() is for CPUs with 16 vector registers,
// RunManyChains() for those with 32.
double RunFewChains(int64_t rounds);
double RunManyChains(int64_t rounds);

}  // namespace hvdlite::doctor
