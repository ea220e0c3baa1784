// Loops over elements: reduce, copy or convert with a factor, fill. They are
// compiled once for each kind of vector unit (target), from *-inl.h and
// reduction_kernels.cc. The first call detects the CPU.
//
// Arrays are whole elements of `dtype`, aligned to it; complex numbers count as
// two floats. The type must have the operation (HasOp()). Functions do not
// block or allocate, and are thread-safe on disjoint arrays. Results have the
// same bits (except payloads of NaNs) for all vector units and all positions in
// an array.
#pragma once

#include <cstddef>
#include <cstdint>

#include "absl/strings/string_view.h"
#include "absl/types/span.h"
#include "collective/kernels/data_type.h"

namespace hvdlite::collective {

// Whether results are stored in the cache or past it, for memory that is not
// read soon (if the CPU has such stores). Values do not depend on it, and
// results become visible to other threads like ordinary stores.
enum class StoreHint { kCached, kStreaming };

// Scaling of an element: scale * (element / divisor). Floats are multiplied by
// scale / divisor. Integers are first divided exactly and truncated toward
// zero; CopyScaled() describes their multiplication.
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

// Whether it is a float type that is narrower than float32, and thus added in
// float32.
inline bool IsNarrowFloat(DataType dtype) {
  return IsFloat(dtype) && SizeOf(dtype) < 4;
}

// A power of two, at most 1, for inputs whose sum will be multiplied by
// `factor`: 1 / the smallest power of two that is at least 1 / |factor| or
// `num_inputs`, whichever is less. Inputs are multiplied by it before they are
// added. So partial sums of an average stay in the range of its inputs.
double ScaleOfInputs(double factor, double num_inputs);

// outputs[j][i] = factor * (inputs[0][i] op inputs[1][i] op ...) for every
// output j, combined in that order. Like Reduce() into a copy of inputs[0] and
// then CopyScaled(), except that 16-bit floats are combined in float32 and
// rounded only at the end. float32 has bfloat16's range, so bfloat16 inputs of
// a sum are multiplied by ScaleOfInputs(factor, inputs.size()), which does not
// round. A single input: CopyScaled().
//
// There is at least one input, and every pointer points to `bytes` bytes. An
// output is one of the inputs or overlaps none of them; outputs do not overlap
// each other.
void ReduceAll(ReduceOp op, DataType dtype, Factor factor,
               absl::Span<const std::byte* const> inputs,
               absl::Span<std::byte* const> outputs, size_t bytes,
               StoreHint hint = StoreHint::kCached);

// inout[i] = inout[i] op in[i]. Both have the same size and do not overlap.
// 16-bit floats are combined in float32 and rounded once. Integer sums and
// products wrap around. The minimum or maximum with NaN is NaN. A bool is true
// if its byte is not 0; results are 0 or 1.
void Reduce(ReduceOp op, DataType dtype, absl::Span<const std::byte> in,
            absl::Span<std::byte> inout);

// out[i] = factor * in[i]; a factor of exactly 1 copies the bytes. Both have
// the same size; `out` is `in` itself or does not overlap it. float64 is scaled
// in double, other floats in float32 with the factor rounded to it. Integers
// and bools are multiplied in double (and so rounded beyond 2^53), truncated
// toward zero and limited to the type's range. If a product is below an integer
// only by the rounding of a factor such as 1/49, it counts as that integer.
void CopyScaled(DataType dtype, Factor factor, absl::Span<const std::byte> in,
                absl::Span<std::byte> out, StoreHint hint = StoreHint::kCached);

// out[i] = factor * in[i] for as many elements of type `to` as `in` has of type
// `from`. Equal types: CopyScaled(). Otherwise both are floats and the arrays
// do not overlap. The product is computed in float32 (in double if one of the
// types is float64) and rounded to `to` once: to nearest, ties to even, and to
// infinity beyond the range.
void ConvertScaled(DataType from, DataType to, Factor factor,
                   absl::Span<const std::byte> in, absl::Span<std::byte> out,
                   StoreHint hint = StoreHint::kCached);

// Fills with the neutral element e (x op e = x): 0 for sums, 1 for products,
// the largest value (infinity) for minima, the smallest for maxima.
void FillNeutral(ReduceOp op, DataType dtype, absl::Span<std::byte> out);

// Whether no element is NaN or infinite; always true for integers and bools.
bool AllFinite(DataType dtype, absl::Span<const std::byte> in);

// The target of the loops in this process, such as "AVX3" or "SVE", and its
// vector length. The length is the CPU's if it is known only at run time.
struct VectorUnit {
  absl::string_view name;
  size_t bytes = 0;
};
VectorUnit ChosenVectorUnit();

}  // namespace hvdlite::collective
