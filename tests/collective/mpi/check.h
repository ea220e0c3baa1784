// For programs that cannot use GoogleTest since they start MPI themselves.
#pragma once

#include <cstdio>
#include <cstdlib>
#include <string>

namespace hvdlite::testing {

// Ends the process with status 1, and with it the run, unless `condition`.
inline void Check(bool condition, const std::string& what) {
  if (condition) return;
  std::fprintf(stderr, "check failed: %s\n", what.c_str());
  std::_Exit(1);
}

}  // namespace hvdlite::testing
