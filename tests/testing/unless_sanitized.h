// Numbers of tries and sizes that depend on the build.
#pragma once

namespace hvdlite::testing {

// Returns `usual`, or `sanitized` under a sanitizer, where each try takes many
// times longer.
constexpr int UnlessSanitized([[maybe_unused]] int usual,
                              [[maybe_unused]] int sanitized) {
#if defined(__SANITIZE_ADDRESS__) || defined(__SANITIZE_THREAD__)
  return sanitized;
#else
  return usual;
#endif
}

}  // namespace hvdlite::testing
