// How often a test tries what it could try any number of times.
#pragma once

namespace hvdlite::testing {

#if defined(__SANITIZE_ADDRESS__) || defined(__SANITIZE_THREAD__)
inline constexpr bool kSanitized = true;
#else
inline constexpr bool kSanitized = false;
#endif

// Sanitizers make each try ten times slower, and look at what one try does:
// orders of events are for the build without.
constexpr int Repetitions(int usual, int sanitized) {
  return kSanitized ? sanitized : usual;
}

}  // namespace hvdlite::testing
