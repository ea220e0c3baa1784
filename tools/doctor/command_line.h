// The flags of hvdlite_doctor.
#pragma once

#include <string>
#include <variant>
#include <vector>

namespace hvdlite::doctor {

struct Flags {
  std::vector<std::string> checks;  // empty: all
  bool skip_slow = false;
  bool no_mpi = false;
  double watch_seconds = 0;  // instead of all checks; 0: no watching
  std::string program;       // empty: none
  std::string json;          // empty: no file; "-": standard output
};

// What to print instead of a run, and the exit code: help, or what is wrong.
struct EarlyEnd {
  std::string text;
  int exit_code = 0;
};

std::variant<Flags, EarlyEnd> ParseFlags(int argc, const char* const* argv);

}  // namespace hvdlite::doctor
