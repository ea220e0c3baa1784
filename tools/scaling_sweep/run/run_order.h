// In which order a sweep runs its configurations.
#pragma once

#include <cstddef>
#include <vector>

#include "tools/scaling_sweep/sweep.pb.h"

namespace hvdlite::scaling_sweep {

struct PlannedRun {
  size_t configuration = 0;  // index
  int repeat = 0;            // from 0

  bool operator==(const PlannedRun&) const = default;
};

// Every repeat goes through all configurations before the next one begins, so
// that what changes on the machine meanwhile meets all of them alike. More
// repeats do not change the order of the first ones.
std::vector<PlannedRun> RunOrder(size_t configurations, int repeats,
                                 Order order, uint64_t seed);

}  // namespace hvdlite::scaling_sweep
