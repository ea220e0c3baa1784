// The time that trainers measure with.
#pragma once

#include <chrono>

namespace hvdlite::trainers {

// Seconds of a monotonic clock.
inline double SteadySeconds() {
  return std::chrono::duration<double>(
             std::chrono::steady_clock::now().time_since_epoch())
      .count();
}

}  // namespace hvdlite::trainers
