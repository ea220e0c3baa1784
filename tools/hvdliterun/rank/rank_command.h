// What the process beside a rank is told: by hvdliterun, on its command line,
// and by the launcher, which rank it is.
#pragma once

#include <optional>
#include <string>
#include <vector>

#include "absl/status/statusor.h"
#include "base/environment.h"
#include "tools/hvdliterun/plan/plan.h"
#include "tools/hvdliterun/plan/settings.h"

namespace hvdlite::launch {

// Of all ranks of a job, alike.
struct ExecRankOptions {
  PlanOptions plan;
  RankChoices choices;
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

// The reverse, of the words after --exec-rank.
absl::StatusOr<ExecRankOptions> ParseExecRank(
    const std::vector<std::string>& arguments);

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

}  // namespace hvdlite::launch
