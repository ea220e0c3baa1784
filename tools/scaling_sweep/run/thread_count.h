// How many threads a rank has, and whether the cores suffice.
#pragma once

#include <optional>

#include "base/environment.h"
#include "tools/scaling_sweep/run/configuration.h"
#include "tools/scaling_sweep/run/launch_plan.h"

namespace hvdlite::scaling_sweep {

// As far as the settings tell: the configuration's, else the first number of
// OMP_NUM_THREADS in its variables or in `environment`, which it inherits.
// Without any, the launcher or the program chooses: 0. LibTorch's choice is not
// that of its OpenMP runtime.
int ThreadsBySettings(const Configuration& configuration,
                      const base::Environment& environment);

struct Processors {
  int cores = 1;
  int cpus = 1;  // hardware threads of the cores
};

// Whether the ranks of a node, with so many threads each (0: one), are too many
// for it. Of threads that a program takes by itself, each needs a hardware
// thread; of those that were asked for (`asked` a rank; 0: none), a core, as
// ranks do. Where the launcher has chosen these threads, `plan` says it.
bool IsOversubscribed(int ranks_per_node, int threads, int asked,
                      const std::optional<LaunchPlan>& plan,
                      const Processors& node);

}  // namespace hvdlite::scaling_sweep
