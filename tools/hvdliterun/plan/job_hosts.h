// Which hosts a job's ranks run on, and how many on each.
#pragma once

#include <vector>

#include "absl/status/statusor.h"
#include "tools/hvdliterun/plan/allocation.h"
#include "tools/hvdliterun/plan/flags.h"
#include "tools/hvdliterun/plan/surroundings.h"
#include "tools/hvdliterun/plan/variables.h"

namespace hvdlite::launch {

struct JobHosts {
  Allocation allocation;
  std::vector<Host> hosts;  // slots: the ranks of each
  int ranks = 0;
  bool this_host = false;  // is one of them, as far as names tell
};

// Those of -H or --hostfile, else of the batch system's job, else this one; the
// ranks of -np, else all slots. Notes a number of ranks that is only likely.
// Errors: nobody says how many ranks, or they do not fit.
absl::StatusOr<JobHosts> HostsOf(const Flags& flags,
                                 const Surroundings& surroundings,
                                 Variables& variables);

}  // namespace hvdlite::launch
