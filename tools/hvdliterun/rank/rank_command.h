// The input of the process beside a rank: its command line from hvdliterun, and
// the number of its rank from the launcher.
#pragma once

#include <optional>
#include <string>
#include <vector>

#include "absl/status/statusor.h"
#include "base/environment.h"
#include "tools/hvdliterun/plan/plan.h"
#include "tools/hvdliterun/plan/settings.h"

namespace hvdlite::launch {

// The same for all ranks of a job.
struct ExecRankOptions {
  PlanOptions plan;
  RankChoices choices;
  std::optional<int> local_size;  // ranks per host, if equal on all hosts
  // The launcher has bound each rank: the rank uses the CPUs that it got.
  bool bound_by_launcher = false;
  std::string openblas;                    // library to query; empty: none
  std::string output_dir;                  // empty: no logs
  bool report = false;                     // report steps to hvdliterun
  bool terminal = false;                   // its output goes to a terminal
  bool in_place = false;  // other ranks may continue without it
  std::vector<std::string> settings = {};  // "NAME=VALUE"
  std::vector<std::string> program = {};
};

// The command line of such a process. `self`: the path of hvdliterun.
std::vector<std::string> ExecRankCommand(const std::string& self,
                                         const ExecRankOptions& options);

// Parses the arguments after --exec-rank.
absl::StatusOr<ExecRankOptions> ParseExecRank(
    const std::vector<std::string>& arguments);

struct RankIdentity {
  int rank = 0;
  int local_rank = 0;
  std::optional<int> local_size;  // ranks of this host; nullopt: not known
};

// Reads the variables of the launchers in base/launcher_environment.h, in that
// order, because a launcher may run inside a SLURM task. `local_size` is used
// if the launcher does not set it. FailedPrecondition: no launcher variable
// gives the rank, or the variables contradict each other.
absl::StatusOr<RankIdentity> IdentityOf(const base::Environment& environment,
                                        std::optional<int> local_size);

}  // namespace hvdlite::launch
