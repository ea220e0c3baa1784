// LauncherDefault: a thing that hvdliterun does for a program of its own
// accord, and that can be taken away to see what it is worth.
#pragma once

#include <string>
#include <vector>

#include "tools/scaling_sweep/run/launch_plan.h"

namespace hvdlite::scaling_sweep {

struct LauncherDefault {
  std::string name;     // "malloc"
  Variables variables;  // that it consists of, with the launcher's values

  bool operator==(const LauncherDefault&) const = default;
};

// Of a plan: threads, the binding of threads, malloc, OpenBLAS kernels, the
// coordinator's core. Not the binding of processes, for which hvdliterun has no
// switch, nor what does nothing.
std::vector<LauncherDefault> LauncherDefaults(const LaunchPlan& plan);

// Variables to be taken away before the program starts, and flags that keep the
// launcher's other defaults as they are in `plan`: it does not see through env,
// by which the program is started then.
struct Ablation {
  std::vector<std::string> unset;
  std::vector<std::string> launcher_flags;

  bool operator==(const Ablation&) const = default;
};

Ablation AblationOf(const LaunchPlan& plan, const LauncherDefault& taken_away);

// "malloc (MALLOC_MMAP_MAX_=0 MALLOC_TRIM_THRESHOLD_=-1)".
std::string Describe(const LauncherDefault& launcher_default);

}  // namespace hvdlite::scaling_sweep
