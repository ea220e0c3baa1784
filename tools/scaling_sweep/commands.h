// The subcommands of the program, one function each.
#pragma once

#include <ostream>
#include <string>

#include "absl/status/statusor.h"
#include "tools/scaling_sweep/flags.h"
#include "tools/scaling_sweep/run/sweep.pb.h"

namespace hvdlite::scaling_sweep {

// Each returns the exit code or an error. The user can fix InvalidArgument,
// NotFound and FailedPrecondition.
absl::StatusOr<int> RunCommand(const Flags& flags, std::ostream& out);
absl::StatusOr<int> ReportCommand(const Flags& flags, std::ostream& out);
absl::StatusOr<int> CompareCommand(const Flags& flags, std::ostream& out);
absl::StatusOr<int> TuneCommand(const Flags& flags, std::ostream& out);

// Returns what `run` or `tune` measures: the spec file that the flags name, or
// a spec made from their program, with their hosts, repeats and time limit. The
// spec is checked. A program gets the arguments "--report {report}", unless its
// arguments contain {report}.
//
// `run` takes the arguments for a program if there is --ranks, --nodes or "--";
// `tune` takes everything for a program except a single file that is not
// executable. InvalidArgument if flags do not fit a spec file or a program;
// NotFound as in LoadSpec.
absl::StatusOr<Spec> RequestedSpec(const Flags& flags);

// Returns the hvdliterun beside this program, unless the flags name another.
std::string LauncherOf(const Flags& flags);

}  // namespace hvdlite::scaling_sweep
