// The timeline_viewer program.
#pragma once

#include <ostream>
#include <string>
#include <vector>

namespace hvdlite::timeline_viewer {

// Exit statuses.
// A trace cannot be read or written, or nothing in it matches the selection.
inline constexpr int kUnreadable = 1;
inline constexpr int kFindings = 3;  // --check: there are findings

// Runs the program with the command line `arguments` (without its name).
// Returns its exit status: 0, one of the above, or support::kInputErrorExitCode
// if the arguments are wrong.
int RunViewer(const std::vector<std::string>& arguments, std::ostream& out,
              std::ostream& err);

}  // namespace hvdlite::timeline_viewer
