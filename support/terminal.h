// Detects whether output is shown on a terminal, also through a launcher.
#pragma once

#include <string>
#include <vector>

namespace hvdlite::support {

// Whether standard output is a terminal that shows the bytes unchanged, or the
// launcher of this process forwards it to one. hvdliterun sets
// base::kTerminalVariable; Open MPI's and Hydra's launchers are found in /proc
// if they run on this host. False if unknown, or if the launcher keeps a copy
// or adds a prefix to lines.
//
// isatty() is not sufficient: Open MPI gives each rank a terminal even if the
// output goes to a file.
bool OutputIsOnTerminal();

// Identifies the stream behind a descriptor on this host, such as "25:7"; empty
// if it is not open.
std::string StreamIdentity(int descriptor);

// Facts about a process, from /proc.
struct Ancestor {
  std::string name;                // of the program, at most 15 characters
  std::string output;              // "/dev/pts/3", "pipe:[4711]"
  std::vector<std::string> arguments;  // command line
};

// Whether the launcher among `ancestors` (nearest first) has a terminal as
// standard output and forwards `output` to it unchanged.
bool LauncherShows(const std::string& output,
                   const std::vector<Ancestor>& ancestors);

}  // namespace hvdlite::support
