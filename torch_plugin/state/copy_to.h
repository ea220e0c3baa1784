// CopyTo: copies into tensors whose elements may share memory.
#pragma once

#include <ATen/core/Tensor.h>

namespace hvdlite::internal {

// Gives `tensor`, whose elements may lie on one another as expand() makes them,
// those of `values`, which is of the same shape and dtype. Throws c10::Error,
// with nothing changed, where elements that share memory would have to differ.
void CopyTo(const at::Tensor& tensor, const at::Tensor& values);

}  // namespace hvdlite::internal
