// What the program does, a function for each subcommand.
#pragma once

#include <ostream>

#include "absl/status/statusor.h"
#include "tools/scaling_sweep/flags.h"

namespace hvdlite::scaling_sweep {

// Each returns the exit code, or an error: InvalidArgument, NotFound and
// FailedPrecondition for what the user can mend.
absl::StatusOr<int> RunCommand(const Flags& flags, std::ostream& out);
absl::StatusOr<int> ReportCommand(const Flags& flags, std::ostream& out);
absl::StatusOr<int> CompareCommand(const Flags& flags, std::ostream& out);
absl::StatusOr<int> TuneCommand(const Flags& flags, std::ostream& out);

// hvdliterun beside this program, unless the flags name another one.
std::string LauncherOf(const Flags& flags);

}  // namespace hvdlite::scaling_sweep
