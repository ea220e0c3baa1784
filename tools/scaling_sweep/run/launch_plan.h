// LaunchPlan: what the launcher would do for a run, as hvdliterun --dry-run
// tells it.
#pragma once

#include <string>
#include <vector>

#include "absl/status/statusor.h"
#include "absl/strings/string_view.h"
#include "tools/scaling_sweep/run/command.h"
#include "tools/scaling_sweep/run/configuration.h"

namespace hvdlite::scaling_sweep {

struct LaunchPlan {
  int threads = 0;  // of a rank; the most of any, if they differ
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

// On how many hosts the ranks would be, according to the answer; 0 if it does
// not say.
int PlannedHosts(absl::string_view text);

// The answer. InvalidArgument if it does not say how many threads a rank has,
// as where nodes plan for themselves.
absl::StatusOr<LaunchPlan> ParseLaunchPlan(absl::string_view text);

}  // namespace hvdlite::scaling_sweep
