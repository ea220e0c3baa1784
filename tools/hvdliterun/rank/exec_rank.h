// The process beside each rank, which the launcher starts: how it runs that
// rank.
#pragma once

#include <string>
#include <vector>

namespace hvdlite::launch {

// Runs `hvdliterun --exec-rank ...`; `arguments` follow --exec-rank. Returns
// the program's exit code (128 + signal), or 1 if it could not be run as
// planned.
int ExecRankMain(const std::vector<std::string>& arguments);

// "DIR/rank.3.log".
std::string LogPath(const std::string& output_dir, int rank);

}  // namespace hvdlite::launch
