// What `run` and `tune` are to measure: a SPEC's file, or a program of the
// command line.
#pragma once

#include "absl/status/statusor.h"
#include "tools/scaling_sweep/flags.h"
#include "tools/scaling_sweep/run/sweep.pb.h"

namespace hvdlite::scaling_sweep {

// The SPEC that the flags name, or one made of their program, with their hosts,
// repeats and time limit, checked. A program gets "--report {report}" behind
// its words unless these have {report}.
//
// `run` takes a program where --ranks or --nodes say in which worlds, and after
// "--"; `tune` takes anything but one file that cannot be run. InvalidArgument
// for flags that a SPEC, or a program, does not go with; NotFound as LoadSpec.
absl::StatusOr<Spec> RequestedSpec(const Flags& flags);

}  // namespace hvdlite::scaling_sweep
