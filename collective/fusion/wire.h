// How elements get into the fusion buffer and out of it.
#pragma once

#include <cstddef>

#include "absl/types/span.h"
#include "collective/fusion/fusion.h"
#include "collective/kernels/data_type.h"

namespace hvdlite::collective {

// Prescales and compresses, decompresses and postscales, in one pass each.
// Sizes without more words are bytes of elements of reduction.dtype. The
// reduction is copied.
//
// A sum of `num_inputs` inputs (of all ranks together, wherever some have been
// added before) whose postscale is a fraction, as an average's is, is divided
// before it is compressed rather than after it has travelled: by the smallest
// power of two that is at least 1/|postscale| or `num_inputs`, whichever is
// less. So the sums of an average stay in the 16-bit type's range where its
// prescaled inputs are in it, and those of values of one sign do where the
// result is in it. A power of two rounds nothing, but for what falls below the
// type's smallest normal number: there an input is off by up to half the
// smallest number, 2^-25 for float16, times that power.
class Wire {
 public:
  Wire(const Reduction& reduction, int num_inputs);

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
  const DataType dtype_;
  const ReduceOp op_;
  const DataType type_;
  double prescale_;
  double postscale_;
  const size_t element_bytes_;
  const size_t wire_element_bytes_;
};

}  // namespace hvdlite::collective
