// Which outputs of a loop are stored past the cache.
#pragma once

#include <cstddef>
#include <cstdint>

#include "absl/algorithm/container.h"
#include "absl/types/span.h"

namespace hvdlite::collective {

// Below, the stores that precede the first aligned vector would be too large a
// part.
inline constexpr size_t kMinStreamedBytes = 4096;

// Bytes from `address` to the next multiple of `alignment`.
inline size_t BytesToAlignment(const std::byte* address, size_t alignment) {
  const size_t past = reinterpret_cast<uintptr_t>(address) % alignment;
  return past == 0 ? 0 : alignment - past;
}

// Outputs that are no inputs (those are in the cache anyway) and have the same
// alignment as the first of them: after `peeled_bytes` bytes they are aligned.
struct StreamedOutputs {
  StreamedOutputs(absl::Span<const std::byte* const> inputs,
                  absl::Span<std::byte* const> outputs, size_t bytes,
                  size_t alignment) {
    if (bytes < kMinStreamedBytes) return;
    for (size_t j = 0; j < outputs.size() && j < 64; ++j) {
      if (absl::c_linear_search(inputs, outputs[j])) continue;
      const size_t distance = BytesToAlignment(outputs[j], alignment);
      if (mask == 0) peeled_bytes = distance;
      if (distance == peeled_bytes) mask |= uint64_t{1} << j;
    }
  }

  uint64_t mask = 0;  // bit j: output j, of the first 64
  size_t peeled_bytes = 0;
};

}  // namespace hvdlite::collective
