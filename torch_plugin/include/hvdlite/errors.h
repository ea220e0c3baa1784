// Errors that the library throws.
#pragma once

#include <c10/util/Exception.h>

#include <string>
#include <utility>

namespace hvdlite {

// The world is lost: a rank died or left, or the transport broke. Everything
// that is pending, and every later operation, fails with it; what() names the
// rank, its host and the reason. All other errors are plain c10::Error: the
// world stays healthy after them, but for a shutdown() whose time was up. Catch
// them where the DistributedOptimizer lives: one that an exception unwinds
// leaves the world.
class WorldBroken : public c10::Error {
 public:
  explicit WorldBroken(std::string message)
      : c10::Error(std::move(message), {}) {}
};

}  // namespace hvdlite
