// Errors in what the user gave to a program.
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

}  // namespace hvdlite::support
