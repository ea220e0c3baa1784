// 16-bit floats where LibTorch, not the data plane, adds them: it would add in
// 16 bits, and round each time.
#pragma once

#include <ATen/Functions.h>
#include <ATen/core/Tensor.h>

namespace hvdlite::internal {

// Whether `tensor`, dense or sparse, is of float16 or bfloat16.
inline bool IsSixteenBit(const at::Tensor& tensor) {
  const at::ScalarType type = tensor.scalar_type();
  return type == at::kHalf || type == at::kBFloat16;
}

// The dense tensor of a sparse (COO) one, in float32 where IsSixteenBit(): the
// values of one place are added there, and not rounded to 16 bits.
inline at::Tensor WidenedDense(const at::Tensor& sparse) {
  if (!IsSixteenBit(sparse)) return sparse.to_dense();
  return at::_sparse_coo_tensor_unsafe(sparse._indices(),
                                       sparse._values().to(at::kFloat),
                                       sparse.sizes())
      .to_dense();
}

}  // namespace hvdlite::internal
