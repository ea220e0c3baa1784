// ContainExceptions: for threads and destructors, where an exception would end
// the process.
#pragma once

#include <utility>

namespace hvdlite::base {

// Runs `body`. An exception that leaves it (no memory, as a rule) ends here.
// True if there was none.
template <typename Body>
bool ContainExceptions(Body&& body) noexcept {
  try {
    std::forward<Body>(body)();
    return true;
  } catch (...) {
    return false;
  }
}

}  // namespace hvdlite::base
