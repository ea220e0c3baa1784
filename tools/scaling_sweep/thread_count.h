// How many threads a rank has, and whether the cores suffice.
#pragma once

#include "base/environment.h"
#include "tools/scaling_sweep/configuration.h"

namespace hvdlite::scaling_sweep {

// As far as the settings tell: the configuration's, else the first number of
// OMP_NUM_THREADS in its variables or in `environment`, which it inherits.
// Without any, the launcher or the program chooses: 0. LibTorch's choice is not
// that of its OpenMP runtime.
int ThreadsBySettings(const Configuration& configuration,
                      const base::Environment& environment);

// Whether the ranks of a node, with so many threads each (0: one), are more
// than its cores.
bool IsOversubscribed(int ranks_per_node, int threads, int cores);

}  // namespace hvdlite::scaling_sweep
