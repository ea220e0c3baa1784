// Sums of 16-bit floats that LibTorch computes instead of the data plane.
// LibTorch would add in 16 bits and round each time.
#pragma once

#include <ATen/Functions.h>
#include <ATen/core/Tensor.h>

namespace hvdlite::internal {

// Whether `tensor`, dense or sparse, is of float16 or bfloat16.
inline bool IsSixteenBit(const at::Tensor& tensor) {
  const at::ScalarType type = tensor.scalar_type();
  return type == at::kHalf || type == at::kBFloat16;
}

// Returns the dense form of a sparse (COO) tensor, in float32 where
// IsSixteenBit(). So values of the same place are added without rounding to 16
// bits.
inline at::Tensor WidenedDense(const at::Tensor& sparse) {
  if (!IsSixteenBit(sparse)) return sparse.to_dense();
  return at::_sparse_coo_tensor_unsafe(sparse._indices(),
                                       sparse._values().to(at::kFloat),
                                       sparse.sizes())
      .to_dense();
}

}  // namespace hvdlite::internal
