// The process beside each rank, which the launcher starts: its command line,
// which rank it is, and how it runs that rank.
#pragma once

#include <optional>
#include <string>
#include <vector>

#include "absl/status/statusor.h"
#include "base/environment.h"
#include "support/openmp.h"
#include "tools/hvdliterun/plan/plan.h"

namespace hvdlite::launch {

// Of all ranks of a job, alike.
struct ExecRankOptions {
  PlanOptions plan;
  bool threads_given = false;    // by --threads
  bool comm_core_given = false;  // by --comm-core
  support::OpenMpRuntime openmp = support::OpenMpRuntime::kUnknown;
  std::optional<int> local_size;  // ranks of each host, if equally many
  // The launcher has bound each rank: its CPUs are the rank's domain.
  bool bound_by_launcher = false;
  std::string openblas;                    // library to look into; empty: none
  std::string output_dir;                  // empty: no logs
  bool report = false;                     // on steps, to hvdliterun
  bool terminal = false;                   // what it prints is seen on one
  bool in_place = false;                   // the others may go on without it
  std::vector<std::string> settings = {};  // "NAME=VALUE"
  std::vector<std::string> program = {};
};

// The command line of such a process, whose own path is `self`.
std::vector<std::string> ExecRankCommand(const std::string& self,
                                         const ExecRankOptions& options);

// Runs `hvdliterun --exec-rank ...`; `arguments` follow --exec-rank. Returns
// the program's exit code (128 + signal), or 1 if it could not be run as
// planned.
int ExecRankMain(const std::vector<std::string>& arguments);

struct RankIdentity {
  int rank = 0;
  int local_rank = 0;
  std::optional<int> local_size;  // ranks of this host; none: nobody tells
};

// From the variables of the launchers that base/launcher_environment.h knows,
// in its order: a launcher may have been started inside a SLURM task.
// `local_size` is used where the launcher does not tell it.
// FailedPrecondition: no launcher tells the rank, or its variables contradict
// each other.
absl::StatusOr<RankIdentity> IdentityOf(const base::Environment& environment,
                                        std::optional<int> local_size);

// "DIR/rank.3.log".
std::string LogPath(const std::string& output_dir, int rank);

}  // namespace hvdlite::launch
