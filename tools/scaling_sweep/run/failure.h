// Why a run has failed, in words.
#pragma once

#include <string>

#include "support/child_process.h"
#include "tools/scaling_sweep/run/results.h"
#include "tools/scaling_sweep/run/sweep.pb.h"

namespace hvdlite::scaling_sweep {

// When a run is ended.
struct RunLimit {
  double seconds = 0;
  std::string source = "time_limit_seconds";  // what it follows from
  // No run can have more: of one that takes longer nothing is kept.
  bool is_all_there_is = false;
};

// Of how a run ended, whose output is in the file `log`; empty: it did not
// fail.
std::string FailureOf(const support::ChildEnd& end, const RunLimit& limit,
                      const std::string& log);

// Where no more is run, as the first run of a sweep, that of `what`, has given
// `sample`, which failed: the program, what it printed, and the remedy. Its
// files are below `directory`.
std::string FirstRunsFailure(const Spec& spec, const Sample& sample,
                             const RunLimit& limit, const std::string& what,
                             const std::string& directory);

}  // namespace hvdlite::scaling_sweep
