// What the program does, a function for each subcommand.
#pragma once

#include <ostream>
#include <string>

#include "absl/status/statusor.h"
#include "tools/scaling_sweep/flags.h"
#include "tools/scaling_sweep/run/sweep.pb.h"

namespace hvdlite::scaling_sweep {

// Each returns the exit code, or an error: InvalidArgument, NotFound and
// FailedPrecondition for what the user can mend.
absl::StatusOr<int> RunCommand(const Flags& flags, std::ostream& out);
absl::StatusOr<int> ReportCommand(const Flags& flags, std::ostream& out);
absl::StatusOr<int> CompareCommand(const Flags& flags, std::ostream& out);
absl::StatusOr<int> TuneCommand(const Flags& flags, std::ostream& out);

// What `run` and `tune` are to measure: the SPEC that the flags name, or one
// made of their program, with their hosts, repeats and time limit, checked. A
// program gets "--report {report}" behind its words unless these have {report}.
//
// `run` takes a program where --ranks or --nodes say in which worlds, and after
// "--"; `tune` takes anything but one file that cannot be run. InvalidArgument
// for flags that a SPEC, or a program, does not go with; NotFound as LoadSpec.
absl::StatusOr<Spec> RequestedSpec(const Flags& flags);

// hvdliterun beside this program, unless the flags name another one.
std::string LauncherOf(const Flags& flags);

}  // namespace hvdlite::scaling_sweep
