// How often a test tries what it could try any number of times.
#pragma once

namespace hvdlite::testing {

// Sanitizers make each try many times slower, and find in few of them what they
// look for; the build without sanitizers makes the others.
constexpr int Repetitions([[maybe_unused]] int usual,
                          [[maybe_unused]] int sanitized) {
#if defined(__SANITIZE_ADDRESS__) || defined(__SANITIZE_THREAD__)
  return sanitized;
#else
  return usual;
#endif
}

}  // namespace hvdlite::testing
