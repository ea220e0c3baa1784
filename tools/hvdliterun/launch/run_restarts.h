// Runs a job, and starts it again when it fails or when hosts appear or
// disappear.
#pragma once

#include "absl/status/statusor.h"
#include "tools/hvdliterun/plan/flags.h"
#include "tools/hvdliterun/plan/host_environment.h"

namespace hvdlite::launch {

// Runs the job of `flags` to its end. Returns the exit code of the last start.
// Each start gets a new plan for the available hosts, and HVDLITE_RESTARTS with
// the number of earlier starts. Logs each action, and prints at the end how
// each start ended. Errors: problems before the first start that the user can
// fix.
absl::StatusOr<int> RunRestarts(const Flags& flags,
                                const HostEnvironment& host_environment);

}  // namespace hvdlite::launch
