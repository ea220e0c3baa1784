// What every trainer does around its training.
#pragma once

#include <functional>
#include <string>

#include "tools/support/command_line.h"

namespace hvdlite::trainers {

// Calls init(), `train` and shutdown(), and returns the process's exit code.
// Rank 0 tells of an InputError or DivergenceError, which all ranks throw
// together; any other exception may be one rank's alone, which tells and ends
// without waiting.
int RunProgram(const std::string& name, const std::function<void()>& train);

// Prints `end` once, however many ranks there are; returns its exit code.
int EndEarly(const EarlyEnd& end);

// The body of main().
template <typename Flags>
int RunProgram(const std::string& name, const CommandLine<Flags>& command_line,
               void (*train)(const Flags&)) {
  if (!command_line.flags) return EndEarly(command_line.end);
  return RunProgram(name, [&] { train(*command_line.flags); });
}

}  // namespace hvdlite::trainers
