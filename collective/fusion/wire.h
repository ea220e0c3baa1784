// How elements get into the fusion buffer and out of it.
#pragma once

#include <cstddef>

#include "absl/types/span.h"
#include "collective/fusion/fusion.h"
#include "collective/kernels/data_type.h"
#include "collective/kernels/reduction_kernels.h"

namespace hvdlite::collective {

// Prescales and compresses, decompresses and postscales, in one pass each.
// Sizes without more words are bytes of elements of reduction.dtype. The
// reduction is copied.
//
// A sum of `num_inputs` inputs (of all ranks together, wherever some have been
// added before) that travels in a 16-bit type and whose factor is a fraction,
// as an average's is, is divided before it travels rather than afterwards: by
// the smallest power of two that is at least 1 / |factor| or `num_inputs`,
// whichever is less (see ScaleOfInputs). So the sums of an average stay in the
// type's range where its prescaled inputs are in it, and those of one sign do
// where the result is in it. Where the inputs themselves are of that type, they
// are in its range, and it is |prescale| * `num_inputs` that counts: then a
// prescale does not make them leave it either. A power of two rounds nothing,
// but for what falls below the type's smallest normal number: there an input is
// off by up to half the smallest number, 2^-25 for float16, times that power.
class Wire {
 public:
  Wire(const Reduction& reduction, int num_inputs);

  DataType type() const { return type_; }  // of the elements in the buffer
  // What Pack and Unpack multiply by.
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

  // Pack and Unpack, as a world of one does it, without memory for the whole.
  // `out` may be `in`; an empty `in` counts as neutral elements.
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
