// Whether what a process prints is seen on a terminal, where launchers stand
// between the two.
#pragma once

#include <string>
#include <vector>

namespace hvdlite::support {

// Whether standard output is a terminal that shows the bytes as they are, or is
// passed on to one by the launcher of this process: hvdliterun says so
// (base::kTerminalVariable); of Open MPI's and Hydra's, if they run on this
// host, /proc tells. False where it cannot be known, and where the launcher
// keeps a copy or puts something before the lines.
//
// That standard output is a terminal says little: Open MPI gives ranks one of
// its own even where their output goes to a file.
bool OutputIsOnTerminal();

// "25:7": what tells the stream behind a descriptor from others of this host.
// Empty if it is not open.
std::string StreamIdentity(int descriptor);

// Of a process, from /proc.
struct Ancestor {
  std::string name;                // of its program, 15 characters at most
  std::string output;              // "/dev/pts/3", "pipe:[4711]"
  std::vector<std::string> words;  // of its command line
};

// Whether the launcher among `ancestors`, the nearest first, has its standard
// output on a terminal and passes `output` on to it as it is.
bool LauncherShows(const std::string& output,
                   const std::vector<Ancestor>& ancestors);

}  // namespace hvdlite::support
