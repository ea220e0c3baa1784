// Where the parts of a buffer begin.
#pragma once

#include <cstddef>
#include <vector>

#include "absl/types/span.h"

namespace hvdlite::collective {

// The offset in bytes of each rank's part, of `bytes_of_rank`.
inline std::vector<size_t> PartOffsets(absl::Span<const size_t> bytes_of_rank) {
  std::vector<size_t> offsets;
  offsets.reserve(bytes_of_rank.size());
  size_t offset = 0;
  for (const size_t bytes : bytes_of_rank) {
    offsets.push_back(offset);
    offset += bytes;
  }
  return offsets;
}

}  // namespace hvdlite::collective
