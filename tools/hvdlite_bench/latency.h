// latency: one 4-byte tensor.
#pragma once

#include <vector>

#include "tools/hvdlite_bench/mpi_world.h"
#include "tools/hvdlite_bench/rounds.h"

namespace hvdlite::tools {

// Three cases, each against MPI alone:
//   together     all ranks wait, one allreduce after the other
//   after_pause  each rank sleeps 1 ms before each
//   computing    each rank submits, and goes on computing; it looks for the
//                result between small pieces of work
// A sample is the median of `operations` in a row. Each lasts from the last
// rank's submission to the last rank's result where all ranks are on one host;
// otherwise from a rank's submission to its result, on the slowest.
//
// Needs hvdlite::init(). `world` must outlive the plans.
std::vector<Plan> LatencyPlans(const MpiWorld& world, int operations);

}  // namespace hvdlite::tools
