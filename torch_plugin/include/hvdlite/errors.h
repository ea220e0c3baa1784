// Errors that the library throws.
#pragma once

#include <c10/util/Exception.h>

#include <string>
#include <utility>

namespace hvdlite {

// The world is lost: a rank died or left, or the transport broke. All pending
// and all later operations throw this error. what() names the rank, its host
// and the reason.
//
//   try {
//     optimizer.step();
//   } catch (const hvdlite::WorldBroken& error) {
//     ... save, and end the process ...
//   } catch (const c10::Error& error) {
//     ... the world still works: call zero_grad() and repeat the step ...
//   }
//
// All other errors are plain c10::Error. The world can still be used after
// them, except after a shutdown() that timed out. Catch errors in the scope of
// the DistributedOptimizer: if an exception destroys it, this rank leaves the
// world.
class WorldBroken : public c10::Error {
 public:
  explicit WorldBroken(std::string message)
      : c10::Error(std::move(message), {}) {}
};

}  // namespace hvdlite
