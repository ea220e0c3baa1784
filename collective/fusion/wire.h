// Converts elements for the fusion buffer and back.
#pragma once

#include <cstddef>

#include "absl/types/span.h"
#include "collective/fusion/fusion.h"
#include "collective/kernels/data_type.h"
#include "collective/kernels/reduction_kernels.h"

namespace hvdlite::collective {

// Prescales and compresses, or decompresses and postscales, in one pass. Sizes
// are bytes of elements of reduction.dtype, unless they say wire. Copies the
// reduction.
//
// A sum of `num_inputs` inputs (over all ranks, even if some are already added)
// may overflow a 16-bit wire type. If its factor is a fraction, as for an
// average, it is therefore divided before it travels: by the smallest power of
// two that is at least 1 / |factor| or `num_inputs`, whichever is less (see
// ScaleOfInputs()). So sums of an average stay in range if its prescaled inputs
// are in range. Sums with one sign stay in range if the result is in range.
//
// If the inputs themselves have the wire type, they are in its range, and
// |prescale| * `num_inputs` counts instead: then a prescale does not make them
// overflow either. A power of two does not round, except below the type's
// smallest normal number: there the error of an input is up to half the
// smallest number, 2^-25 for float16, times that power.
class Wire {
 public:
  Wire(const Reduction& reduction, int num_inputs);

  DataType type() const { return type_; }  // of elements in the buffer
  // The factors of Pack() and Unpack().
  double prescale() const { return prescale_; }
  Factor postscale() const { return postscale_; }

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

  // Pack() and Unpack() for a world of one, without memory for the whole. `out`
  // may be `in`; an empty `in` counts as neutral elements.
  void PackAndUnpack(absl::Span<const std::byte> in,
                     absl::Span<std::byte> out) const;

 private:
  const DataType dtype_;
  const ReduceOp op_;
  const DataType type_;
  double prescale_;
  Factor postscale_;
  const size_t element_bytes_;
  const size_t wire_element_bytes_;
};

}  // namespace hvdlite::collective
