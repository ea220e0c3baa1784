// The command line of scaling_sweep.
#pragma once

#include <string>
#include <vector>

#include "support/command_line.h"

namespace hvdlite::scaling_sweep {

struct Flags {
  std::string command;  // run, report, compare or tune
  // run, tune: a spec file, or a program and its arguments; report: a
  // directory; compare: two directories.
  std::vector<std::string> arguments;
  bool after_dashes = false;  // "--" came before them: they are a program

  std::string output;              // empty: from the name of the spec
  std::string launcher;            // empty: hvdliterun beside this program
  std::vector<std::string> hosts;  // instead of those of the spec
  bool retry_failed = false;
  int repeats = 0;                // 0: those of the spec, or 3
  double time_limit_seconds = 0;  // 0: that of the spec, or 600
  // For `run` with a program.
  // Ranks per node. Without ranks and nodes: powers of two, and the number of
  // cores of this machine.
  std::vector<int> ranks;
  std::vector<int> nodes;
  std::vector<int> threads;  // per rank; none: hvdliterun's choice
  bool weak = false;
  bool dry_run = false;  // only prints the commands
  std::string fail_if;
  // For `tune`.
  double minutes = 0;  // 0: 15
  int candidates = 0;  // 0: those of the spec
  int final_repeats = 0;
};

// Parses the arguments, which do not contain the program's name.
support::CommandLine<Flags> ParseCommandLine(
    std::vector<std::string> arguments);

}  // namespace hvdlite::scaling_sweep
