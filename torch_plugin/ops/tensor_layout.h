// Brings tensors of any strides into the form that operations take.
#pragma once

#include <ATen/core/Tensor.h>

#include "torch_plugin/ops/pending_operation.h"

namespace hvdlite::internal {

// `tensor`, apart from autograd, if it is row-major; else a copy that is.
at::Tensor RowMajor(const at::Tensor& tensor);

// Row-major tensors for an operation whose result has the shape of `tensor`. In
// place: the result goes into `tensor` itself, by a copy at the end if it is
// not row-major; the elements of `tensor` must not overlap in memory. Otherwise
// it goes into a new tensor.
OperationTensors RowMajorTensors(const at::Tensor& tensor, bool in_place);

// Whether tensors share memory with one another, or a tensor's elements lie on
// one another as expand() makes them: they cannot be written independently. All
// are supported dense tensors.
bool OverlapInMemory(at::TensorList tensors);

}  // namespace hvdlite::internal
