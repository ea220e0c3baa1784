// CopyTo: copies values to a tensor whose elements may share memory.
#pragma once

#include <ATen/core/Tensor.h>

namespace hvdlite::internal {

// Copies `values`, of the same shape and dtype, to `tensor`, whose elements may
// share memory as those of expand() do. Throws c10::Error, and changes nothing,
// if elements that share memory would get different values.
void CopyTo(const at::Tensor& tensor, const at::Tensor& values);

}  // namespace hvdlite::internal
