// The flags of hvdlite_doctor.
#pragma once

#include <string>
#include <vector>

#include "support/command_line.h"

namespace hvdlite::doctor {

struct Flags {
  std::vector<std::string> checks;  // empty: all
  bool skip_slow = false;
  bool no_mpi = false;
  double watch_seconds = 0;  // instead of all checks; 0: no watching
  std::string program;       // empty: none
  std::string json;          // empty: no file; "-": standard output
  bool overwrite = false;    // the file
};

support::CommandLine<Flags> ParseFlags(int argc, const char* const* argv);

}  // namespace hvdlite::doctor
