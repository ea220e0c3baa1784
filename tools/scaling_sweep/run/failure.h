// Describes why a run failed.
#pragma once

#include <string>

#include "support/child_process.h"
#include "tools/scaling_sweep/run/results.h"
#include "tools/scaling_sweep/run/sweep.pb.h"

namespace hvdlite::scaling_sweep {

// The time limit of a run.
struct RunLimit {
  double seconds = 0;
  std::string source = "time_limit_seconds";  // where the limit comes from
  // No run can have more time: the result of a longer run is not kept.
  bool is_all_there_is = false;
};

// Returns why a run failed; empty if it did not fail. `log` is the file with
// its output.
std::string FailureOf(const support::ChildEnd& end, const RunLimit& limit,
                      const std::string& log);

// Returns the message that ends a sweep because its first run, of the
// configuration `what`, failed: the program, its output, and the remedy.
// `sample` is the failed run, with its files below `directory`.
std::string FirstRunsFailure(const Spec& spec, const Sample& sample,
                             const RunLimit& limit, const std::string& what,
                             const std::string& directory);

}  // namespace hvdlite::scaling_sweep
