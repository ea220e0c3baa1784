// Job: all decisions that are made before the launcher starts. Creating a Job
// starts no rank.
#pragma once

#include <string>
#include <utility>
#include <vector>

#include "absl/status/statusor.h"
#include "tools/hvdliterun/plan/allocation.h"
#include "tools/hvdliterun/plan/flags.h"
#include "tools/hvdliterun/plan/host_environment.h"
#include "tools/hvdliterun/plan/launcher.h"
#include "tools/hvdliterun/plan/machine.h"
#include "tools/hvdliterun/plan/variables.h"
#include "tools/hvdliterun/rank/rank_command.h"

namespace hvdlite::launch {

struct Job {
  int ranks = 0;
  std::string allocation;    // the origin of the hosts
  std::vector<Host> hosts;   // slots: the ranks of each
  std::string machine_from;  // "this machine", "--topology"
  Machine machine;           // all hosts are assumed to be like this one
  Variables variables;       // of all ranks, without those of single ranks
  ExecRankOptions exec;
  Launcher launcher = Launcher::kOpenMpi;
  std::vector<std::string> command;  // launcher, hvdliterun itself, program
  // Variables that the launcher gets in addition to this process's environment.
  std::vector<std::pair<std::string, std::string>> launcher_environment;
  // The kernels that this host would set for OpenBLAS; empty: none, or this is
  // not a dry run.
  std::string openblas_core_here;
  std::vector<std::string> notes;
};

// The hosts of -H or --hostfile; else those of the batch system's job; else
// none, which means this host. There may be more hosts than the job needs.
absl::StatusOr<Allocation> AllocationOf(
    const Flags& flags, const HostEnvironment& host_environment);

// Each node makes its own plan. The plan made here, for hosts that are assumed
// to be like this machine, is shown and checked. If it does not fit, this is an
// error; or only a note, if this host is not part of the job. The user can fix
// all errors.
absl::StatusOr<Job> MakeJob(const Flags& flags,
                            const HostEnvironment& host_environment);

}  // namespace hvdlite::launch
