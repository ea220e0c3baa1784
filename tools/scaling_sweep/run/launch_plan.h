// LaunchPlan: what the launcher would do for a run, as hvdliterun
// --dry-run=json tells it; what of it the launcher does of its own accord; and
// how many threads a rank has then, and whether the cores suffice.
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
  int hosts = 0;  // that ranks would be on
  // Of a rank; the most of any, if they differ; 0: it does not say, as where
  // nodes plan for themselves.
  int threads = 0;
  // Ranks share cores, or have more threads than CPUs: --oversubscribe.
  bool oversubscribed = false;
  std::string openmp;  // runtime that the program links, as --openmp has it
  // What the launcher sets in ranks' environments (the first one's) of its own
  // accord, not for the user, a flag or a preset.
  Variables defaults;
};

// The command that asks the launcher of `command` what it would do if it were
// given --oversubscribe: whether that is needed is part of the answer.
Command DryRunOf(const Command& command);

// The answer in `text`, which is one of its lines; nullopt: there is none.
std::optional<LaunchPlan> ParseLaunchPlan(absl::string_view text);

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

// A thing that hvdliterun does for a program of its own accord, and that can be
// taken away to see what it is worth.
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
