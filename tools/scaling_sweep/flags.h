// The command line of scaling_sweep.
#pragma once

#include <string>
#include <vector>

#include "support/command_line.h"

namespace hvdlite::scaling_sweep {

struct Flags {
  std::string command;  // run, report, compare or tune
  // SPEC or a program and its arguments, of run and tune; DIR; A B; FILE.
  std::vector<std::string> arguments;
  bool after_dashes = false;  // "--" stands among them: a program's

  std::string output;              // empty: after the SPEC's name
  std::string launcher;            // empty: hvdliterun beside this program
  std::vector<std::string> hosts;  // instead of the SPEC's
  bool retry_failed = false;
  int repeats = 0;                // 0: the SPEC's, or 3 of a program
  double time_limit_seconds = 0;  // 0: the SPEC's, or 600
  // Of run, for a program.
  // Of a node; none, and no nodes: powers of two, and the cores of this one.
  std::vector<int> ranks;
  std::vector<int> nodes;
  std::vector<int> threads;  // of a rank; none: hvdliterun's choice
  bool weak = false;
  bool dry_run = false;  // tells what would be run
  std::string fail_if;
  // Of tune.
  double minutes = 0;  // 0: 15
  int candidates = 0;  // 0: the SPEC's
  int final_repeats = 0;
};

// Of arguments without the program's name.
support::CommandLine<Flags> ParseCommandLine(
    std::vector<std::string> arguments);

}  // namespace hvdlite::scaling_sweep
