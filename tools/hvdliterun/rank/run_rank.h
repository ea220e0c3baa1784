// Runs one rank on its node: plans its cores, binds, starts the program, and
// tells how it ended.
#pragma once

#include <string>

#include "tools/hvdliterun/rank/exec_rank.h"
#include "tools/hvdliterun/rank/rank_identity.h"

namespace hvdlite::launch {

// Returns the program's exit code (128 + signal), or 1 if it could not be run
// as planned. A failure is told on standard error, to the user and to
// hvdliterun (rank_reports.h).
int RunRank(const RankIdentity& identity, const ExecRankOptions& options);

// "DIR/rank.3.log".
std::string LogPath(const std::string& output_dir, int rank);

}  // namespace hvdlite::launch
