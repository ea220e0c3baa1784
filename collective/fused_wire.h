// How elements get into the fusion buffer and out of it.
#pragma once

#include <cstddef>

#include "absl/types/span.h"
#include "collective/data_type.h"
#include "collective/reduction.h"

namespace hvdlite::collective {

// Prescales and compresses, decompresses and postscales, in one pass each.
// Sizes without more words are bytes of elements of reduction.dtype. The
// reduction is copied.
class Wire {
 public:
  explicit Wire(const Reduction& reduction);

  DataType type() const { return type_; }  // of the elements in the buffer

  size_t WireBytes(size_t bytes) const {
    return bytes / element_bytes_ * wire_element_bytes_;
  }
  size_t BytesThatFit(size_t wire_bytes) const {
    return wire_bytes / wire_element_bytes_ * element_bytes_;
  }

  void Pack(absl::Span<const std::byte> in, absl::Span<std::byte> wire) const;
  void PackNeutral(absl::Span<std::byte> wire) const;
  void Unpack(absl::Span<const std::byte> wire,
              absl::Span<std::byte> out) const;

  // Pack and Unpack, as a world of one does it, without memory for the whole.
  // `out` may be `in`; an empty `in` counts as neutral elements.
  void PackAndUnpack(absl::Span<const std::byte> in,
                     absl::Span<std::byte> out) const;

 private:
  const Reduction reduction_;
  const DataType type_;
  const size_t element_bytes_;
  const size_t wire_element_bytes_;
};

}  // namespace hvdlite::collective
