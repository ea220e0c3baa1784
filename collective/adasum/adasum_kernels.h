// The arithmetic of Adasum on vectors of floats.
//
// Vectors are whole, aligned elements of a float type. Functions do not block
// or allocate; they are thread-safe on disjoint vectors.
#pragma once

#include <cstddef>

#include "absl/types/span.h"
#include "collective/kernels/data_type.h"

namespace hvdlite::collective {

// Scalar products of two vectors a and b.
struct ScalarProducts {
  double aa = 0;
  double bb = 0;
  double ab = 0;
};

inline ScalarProducts operator+(const ScalarProducts& x,
                                const ScalarProducts& y) {
  return {x.aa + y.aa, x.bb + y.bb, x.ab + y.ab};
}

// Computes the scalar products in double. The vectors have the same size.
ScalarProducts MultiplyVectors(DataType dtype, absl::Span<const std::byte> a,
                               absl::Span<const std::byte> b);

// The combination of a and b is a_factor * a + b_factor * b.
struct AdasumFactors {
  double a;
  double b;
};

// 1 - a.b / (2 a.a) and 1 - a.b / (2 b.b). The factor is 1 for a vector whose
// product with itself is zero.
AdasumFactors FactorsFor(const ScalarProducts& products);

// b[i] = factors.a * a[i] + factors.b * b[i], in float32 (in double for
// float64, with factors rounded to the same type), rounded to `dtype` once. The
// vectors have the same size and do not overlap.
void CombineVectors(DataType dtype, const AdasumFactors& factors,
                    absl::Span<const std::byte> a, absl::Span<std::byte> b);

}  // namespace hvdlite::collective
