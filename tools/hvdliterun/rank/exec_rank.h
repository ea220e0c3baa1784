// The command line of the process beside each rank, which the launcher starts:
// run_rank.h says what that does.
#pragma once

#include <optional>
#include <string>
#include <vector>

#include "tools/hvdliterun/plan/plan.h"
#include "tools/support/linked_libraries.h"

namespace hvdlite::launch {

// Of all ranks of a job, alike.
struct ExecRankOptions {
  PlanOptions plan;
  bool threads_given = false;    // by --threads
  bool comm_core_given = false;  // by --comm-core
  OpenMpRuntime openmp = OpenMpRuntime::kUnknown;
  std::optional<int> local_size;  // ranks of each host, if equally many
  // The launcher has bound each rank: its CPUs are the rank's domain.
  bool bound_by_launcher = false;
  std::string openblas;                    // library to look into; empty: none
  std::string output_dir;                  // empty: no logs
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

}  // namespace hvdlite::launch
