// ContainExceptions: for threads and destructors, where an exception would
// terminate the process.
#pragma once

#include <utility>

namespace hvdlite::base {

// Runs `body` and catches its exceptions (mostly std::bad_alloc). True if
// there was none.
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
