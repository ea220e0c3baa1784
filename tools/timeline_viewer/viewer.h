// The timeline_viewer program.
#pragma once

#include <ostream>
#include <string>
#include <vector>

namespace hvdlite::timeline_viewer {

// Runs the program with the command line `arguments` (without its name).
// Returns its exit status: 0; 1 if the trace cannot be read; 2 if the arguments
// make no sense.
int RunViewer(const std::vector<std::string>& arguments, std::ostream& out,
              std::ostream& err);

}  // namespace hvdlite::timeline_viewer
