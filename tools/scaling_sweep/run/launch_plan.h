// LaunchPlan: what the launcher would do for a run, as printed by hvdliterun
// --dry-run=json. It contains which settings the launcher chooses by default,
// how many threads a rank gets, and whether there are enough cores.
#pragma once

#include <optional>
#include <string>
#include <vector>

#include "absl/strings/string_view.h"
#include "base/environment.h"
#include "tools/scaling_sweep/run/command.h"
#include "tools/scaling_sweep/run/configuration.h"

namespace hvdlite::scaling_sweep {

struct LaunchPlan {
  int hosts = 0;  // number of hosts with ranks
  // Threads per rank, the maximum if they differ; 0: not known, for example
  // because each node makes its own plan.
  int threads = 0;
  // Ranks share cores, or have more threads than CPUs: --oversubscribe.
  bool oversubscribed = false;
  std::string openmp;  // OpenMP runtime of the program, as in --openmp
  // The variables that the launcher sets by default for the first rank, without
  // the user's variables, flags and presets.
  Variables defaults;
};

// Returns the command that asks the launcher of `command` for its plan with
// --oversubscribe. The answer shows whether --oversubscribe is needed.
Command DryRunOf(const Command& command);

// Returns the plan, which is one of the lines of `text`; nullopt if none is.
std::optional<LaunchPlan> ParseLaunchPlan(absl::string_view text);

// Returns the threads per rank that are set: by the configuration, or else by
// the first number of OMP_NUM_THREADS in its variables or in the inherited
// `environment`. 0 if the launcher or the program chooses. (LibTorch chooses
// another number than its OpenMP runtime.)
int ThreadsBySettings(const Configuration& configuration,
                      const base::Environment& environment);

struct Processors {
  int cores = 1;
  int cpus = 1;  // hardware threads of the cores
};

// Whether a node is too small for its ranks with so many threads each (0: one).
// A thread that the program starts by default needs a hardware thread. A
// requested thread (`asked` per rank; 0: none) and a rank need a core. If the
// launcher has chosen the threads, `plan` decides.
bool IsOversubscribed(int ranks_per_node, int threads, int asked,
                      const std::optional<LaunchPlan>& plan,
                      const Processors& node);

// A default setting of hvdliterun that can be removed to measure its effect.
struct LauncherDefault {
  std::string name;     // "malloc"
  Variables variables;  // its variables with the launcher's values

  bool operator==(const LauncherDefault&) const = default;
};

// Returns the defaults in a plan: threads, binding of threads, malloc, OpenBLAS
// kernels, the coordinator's core. The binding of processes is not included,
// because hvdliterun has no flag for it, nor are settings without effect.
std::vector<LauncherDefault> LauncherDefaults(const LaunchPlan& plan);

// How to remove a default: variables to remove before the program starts, and
// flags that keep the launcher's other defaults as in `plan`. The flags are
// needed because `env` starts the program, and hvdliterun cannot inspect the
// program behind it.
struct Ablation {
  std::vector<std::string> unset;
  std::vector<std::string> launcher_flags;

  bool operator==(const Ablation&) const = default;
};

Ablation AblationOf(const LaunchPlan& plan, const LauncherDefault& taken_away);

// Returns "malloc (MALLOC_MMAP_MAX_=0 MALLOC_TRIM_THRESHOLD_=-1)".
std::string Describe(const LauncherDefault& launcher_default);

}  // namespace hvdlite::scaling_sweep
