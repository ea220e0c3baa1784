// Why a run has failed, in words.
#pragma once

#include <string>

#include "tools/scaling_sweep/run/results.h"
#include "tools/scaling_sweep/run/sweep.pb.h"
#include "tools/support/child_process.h"

namespace hvdlite::scaling_sweep {

// Of how a run ended, whose output is in the file `log`; empty: it did not
// fail.
std::string FailureOf(const support::ChildEnd& end, double limit_seconds,
                      const std::string& log);

// Where no more is run, as the first run of a sweep, that of `what`, has given
// `sample`, which failed: the program, what it printed, and the remedy. Its
// files are below `directory`.
std::string FirstRunsFailure(const Spec& spec, const Sample& sample,
                             const std::string& what,
                             const std::string& directory);

}  // namespace hvdlite::scaling_sweep
