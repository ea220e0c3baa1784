// The process beside each rank: the launcher starts it, and it runs the rank.
#pragma once

#include <string>
#include <vector>

namespace hvdlite::launch {

// Runs `hvdliterun --exec-rank ...`; `arguments` follow --exec-rank. Returns
// the program's exit code (128 + signal), or 1 if the program could not be run
// as planned.
int ExecRankMain(const std::vector<std::string>& arguments);

// "DIR/rank.3.log".
std::string LogPath(const std::string& output_dir, int rank);

}  // namespace hvdlite::launch
