// Errors in the input of a program's user, and exit codes
// (docs/configuration.md, Exit codes).
#pragma once

#include <stdexcept>

namespace hvdlite::support {

// A flag or a file is wrong; the message says which and what is expected.
// Programs end with kInputErrorExitCode.
class InputError : public std::runtime_error {
 public:
  using std::runtime_error::runtime_error;
};

inline constexpr int kInputErrorExitCode = 2;

// Exit code of a check that found a problem to fix.
inline constexpr int kFoundExitCode = 3;

}  // namespace hvdlite::support
