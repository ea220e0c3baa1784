// Runs a job, and starts it again when it fails or when hosts come and go.
#pragma once

#include "absl/status/statusor.h"
#include "tools/hvdliterun/plan/flags.h"
#include "tools/hvdliterun/plan/surroundings.h"

namespace hvdlite::launch {

// What `flags` ask for, to its end; the exit code of the last start. Each start
// is planned anew, for the hosts that are left, and is told by HVDLITE_RESTARTS
// how many came before it. Tells on standard error what it does, and at the end
// how each start ended. Errors: what the user can mend before the first start.
absl::StatusOr<int> RunRestarts(const Flags& flags,
                                const Surroundings& surroundings);

}  // namespace hvdlite::launch
