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
  double watch_seconds = 0;  // watch instead of checking; 0: check
  std::string program;       // empty: none
  std::string json;          // empty: no file; "-": standard output
  bool overwrite = false;    // replace the file `json`
};

support::CommandLine<Flags> ParseFlags(int argc, const char* const* argv);

}  // namespace hvdlite::doctor
