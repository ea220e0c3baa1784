// Multiply-adds in registers, at the width of this CPU's vectors.
#pragma once

#include <cstdint>
#include <string>

namespace hvdlite::doctor {

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
