// Whether compressed values are rounded in this world.
#pragma once

#include <hvdlite/world.h>

#include <cstdlib>
#include <string_view>

namespace hvdlite::testing {

// What stays in the shared memory of one node is not compressed.
inline bool CompressionRounds() {
  const char* const shared = std::getenv("HVDLITE_SHARED_MEMORY");
  return size() == 1 || cross_size() > 1 ||
         (shared != nullptr && std::string_view(shared) == "0");
}

}  // namespace hvdlite::testing
