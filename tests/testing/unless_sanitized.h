// Numbers of tries, sizes and the like, of which a test could have any.
#pragma once

namespace hvdlite::testing {

// `usual`, but under a sanitizer `sanitized`: each try takes many times longer
// there.
constexpr int UnlessSanitized([[maybe_unused]] int usual,
                              [[maybe_unused]] int sanitized) {
#if defined(__SANITIZE_ADDRESS__) || defined(__SANITIZE_THREAD__)
  return sanitized;
#else
  return usual;
#endif
}

}  // namespace hvdlite::testing
