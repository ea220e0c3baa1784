// The loops over elements: reduce, copy or convert with a factor, fill. They
// are compiled once for each kind of vector unit (target), from *-inl.h and
// reduction_kernels.cc; the first call finds out what the CPU has.
//
// Arrays are whole elements of `dtype`, aligned to it; complex numbers count as
// the floats that they consist of. Operations are those that the type has
// (HasOp). Not blocking, no allocation; thread-safe on disjoint arrays. Results
// are the same, bit by bit (but for the payloads of NaNs), whatever vectors the
// CPU has, and wherever in an array an element is.
#pragma once

#include <cstddef>
#include <cstdint>

#include "absl/strings/string_view.h"
#include "absl/types/span.h"
#include "collective/kernels/data_type.h"

namespace hvdlite::collective {

// Where results are to go: into the cache, or past it (where the CPU has such
// stores), for memory that nobody reads soon. Values do not depend on it, and
// other threads see the results as they do those of ordinary stores.
enum class StoreHint { kCached, kStreaming };

// What an element is scaled by: scale * (element / divisor). Floats are
// multiplied by scale / divisor. Integers are divided first, exactly, and
// truncated toward zero; then CopyScaled tells how they are multiplied.
struct Factor {
  constexpr Factor(double scale_to_use, int64_t divisor_to_use = 1)  // NOLINT
      : scale(scale_to_use), divisor(divisor_to_use) {}

  constexpr bool is_one() const { return scale == 1 && divisor == 1; }
  constexpr double value() const {
    return scale / static_cast<double>(divisor);
  }

  double scale;
  int64_t divisor;  // positive
};

// Whether it is a float type that is added in float32, since it is narrower.
inline bool IsNarrowFloat(DataType dtype) {
  return IsFloat(dtype) && SizeOf(dtype) < 4;
}

// The power of two, at most 1, by which inputs are multiplied before they are
// added where their sum is multiplied by `factor`: 1 / the smallest one that is
// at least 1 / |factor| or `num_inputs`, whichever is less. So no partial sum
// of an average leaves the range that its inputs are in.
double ScaleOfInputs(double factor, double num_inputs);

// outputs[j][i] = factor * (inputs[0][i] op inputs[1][i] op ...) for every
// output j, combined in that order: as by Reduce into a copy of inputs[0] and
// then CopyScaled, but 16-bit floats are combined in float32 and rounded once,
// at the end. float32 has bfloat16's range: sums of bfloat16 are taken of
// inputs times ScaleOfInputs(factor, inputs.size()), which rounds nothing. A
// single input: CopyScaled. Every pointer, of one input or more, is the
// beginning of `bytes` bytes; an output either is one of the inputs or overlaps
// none of them, and outputs do not overlap each other.
void ReduceAll(ReduceOp op, DataType dtype, Factor factor,
               absl::Span<const std::byte* const> inputs,
               absl::Span<std::byte* const> outputs, size_t bytes,
               StoreHint hint = StoreHint::kCached);

// inout[i] = inout[i] op in[i]. Both have the same size and do not overlap.
// 16-bit floats are combined in float32 and rounded once. Integer sums and
// products wrap around. Minima and maxima of NaN and anything are NaN. A bool
// is true if its byte is not 0; results are 0 or 1.
void Reduce(ReduceOp op, DataType dtype, absl::Span<const std::byte> in,
            absl::Span<std::byte> inout);

// out[i] = factor * in[i]; a factor of exactly 1 copies the bytes. Same sizes;
// `out` is `in` itself or does not overlap it. float64 is scaled in double,
// other floats in float32 with the factor rounded to it. Integers and bools are
// multiplied in double (so that beyond 2^53 they are rounded to one), truncated
// toward zero and limited to the type's range; a product below an integer by no
// more than the rounding of a factor like 1/49 explains counts as that integer.
void CopyScaled(DataType dtype, Factor factor, absl::Span<const std::byte> in,
                absl::Span<std::byte> out, StoreHint hint = StoreHint::kCached);

// out[i] = factor * in[i] for as many elements of `to` as `in` has of `from`.
// Equal types: CopyScaled. Otherwise both are floats and the arrays do not
// overlap; the product is computed in float32 (in double if one of the types is
// float64) and then rounded to `to` once: to nearest, ties to even, beyond its
// range to infinity.
void ConvertScaled(DataType from, DataType to, Factor factor,
                   absl::Span<const std::byte> in, absl::Span<std::byte> out,
                   StoreHint hint = StoreHint::kCached);

// Fills with the element e for which x op e = x: 0 for sums, 1 for products,
// the largest value (infinity) for minima, the smallest for maxima.
void FillNeutral(ReduceOp op, DataType dtype, absl::Span<std::byte> out);

// Whether no element is NaN or infinite; integers and bools never are.
bool AllFinite(DataType dtype, absl::Span<const std::byte> in);

// What the loops of this process are compiled for: "AVX3", "SVE", ..., and the
// length of its vectors (that of the CPU, where code can tell only at run
// time).
struct VectorUnit {
  absl::string_view name;
  size_t bytes = 0;
};
VectorUnit ChosenVectorUnit();

}  // namespace hvdlite::collective
