// Brings tensors of any strides into the form that operations take.
#pragma once

#include <ATen/core/Tensor.h>

#include "torch_plugin/pending_operation.h"

namespace hvdlite::internal {

// Row-major tensors for an operation on `tensor`. In place: the result goes
// into `tensor` itself, by a copy at the end if it is not row-major; throws
// c10::Error if its elements overlap in memory. Otherwise it goes into a new
// tensor.
OperationTensors RowMajorTensors(const at::Tensor& tensor, bool in_place);

}  // namespace hvdlite::internal
