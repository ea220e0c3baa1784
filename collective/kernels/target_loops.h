// The loops over arrays, compiled once for each kind of vector unit (target);
// the first call finds out what the CPU has. Values do not depend on the
// target.
//
// A target's sources are collective/kernels/*-inl.h and target_loops.cc.
#pragma once

#include <cstddef>

#include "absl/strings/string_view.h"
#include "absl/types/span.h"
#include "collective/kernels/data_type.h"
#include "collective/kernels/reduce_op.h"
#include "collective/kernels/reduction_kernels.h"

namespace hvdlite::collective {

// What the loops of this process are compiled for: "AVX3", "SVE", ..., and the
// length of its vectors (that of the CPU, where code can tell only at run
// time).
struct VectorUnit {
  absl::string_view name;
  size_t bytes = 0;
};
VectorUnit ChosenVectorUnit();

// As ReduceAll; a single input is scaled, and rounded, even if `factor` is 1.
void ReduceLoops(ReduceOp op, DataType dtype, double factor,
                 absl::Span<const std::byte* const> inputs,
                 absl::Span<std::byte* const> outputs, size_t bytes,
                 StoreHint hint);

// out[i] = factor * in[i], between different float types; see ConvertScaled.
void ConvertLoops(DataType from, DataType to, double factor,
                  absl::Span<const std::byte> in, absl::Span<std::byte> out,
                  StoreHint hint);

// Copies past the cache. The arrays do not overlap.
void CopyLoops(absl::Span<const std::byte> in, absl::Span<std::byte> out);

}  // namespace hvdlite::collective
