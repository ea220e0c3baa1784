// Whether compressed values are rounded in this world.
#pragma once

#include <hvdlite/config.h>
#include <hvdlite/world.h>

namespace hvdlite::testing {

// Data that stays in the shared memory of one node is not compressed.
inline bool CompressionRounds() {
  return size() == 1 || cross_size() > 1 || !Config::from_env().shared_memory;
}

}  // namespace hvdlite::testing
