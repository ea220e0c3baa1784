// Job: everything that is decided before the launcher starts. Making one starts
// no rank.
#pragma once

#include <string>
#include <utility>
#include <vector>

#include "absl/status/statusor.h"
#include "tools/hvdliterun/plan/allocation.h"
#include "tools/hvdliterun/plan/flags.h"
#include "tools/hvdliterun/plan/launcher.h"
#include "tools/hvdliterun/plan/machine.h"
#include "tools/hvdliterun/plan/surroundings.h"
#include "tools/hvdliterun/plan/variables.h"
#include "tools/hvdliterun/rank/rank_command.h"

namespace hvdlite::launch {

struct Job {
  int ranks = 0;
  std::string allocation;    // where the hosts are from
  std::vector<Host> hosts;   // slots: the ranks of each
  std::string machine_from;  // "this machine", "--topology"
  Machine machine;           // that all hosts are taken to be alike
  Variables variables;       // of all ranks, before those of single ranks
  ExecRankOptions exec;
  Launcher launcher = Launcher::kOpenMpi;
  std::vector<std::string> command;  // launcher, hvdliterun itself, program
  // What the launcher itself gets on top of this process's environment.
  std::vector<std::pair<std::string, std::string>> launcher_environment;
  // The kernels that this host sets for OpenBLAS by itself; empty: none, or
  // nobody has asked.
  std::string openblas_core_here;
  std::vector<std::string> notes;
};

// The hosts of -H or --hostfile, else of the batch system's job, else none:
// this one. More than the job needs, it may be.
absl::StatusOr<Allocation> AllocationOf(const Flags& flags,
                                        const Surroundings& surroundings);

// Errors are what the user can mend. The nodes plan for
// themselves; what is planned here for hosts that are taken to be like
// `machine` is shown, and checked; what does not fit is only noted where none
// of them is this host.
absl::StatusOr<Job> MakeJob(const Flags& flags,
                            const Surroundings& surroundings);

}  // namespace hvdlite::launch
