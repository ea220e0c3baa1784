// Checks of tensors and options, their description in bytes, and the conversion
// of tensors with any strides to the layout that operations need.
#pragma once

#include <ATen/core/Tensor.h>
#include <hvdlite/ops.h>

#include <cstddef>
#include <cstdint>
#include <string>
#include <vector>

#include "absl/types/span.h"
#include "collective/kernels/data_type.h"
#include "negotiation/protocol/request.h"

namespace hvdlite::internal {

// Returns "" if `tensor` is a dense CPU tensor of a supported dtype. Otherwise
// returns the error and what to do, for Request::local_error: "the tensor is
// undefined".
std::string TensorError(const at::Tensor& tensor);

// Throws c10::Error unless TensorError() is empty. `what` starts the message:
// "DistributedOptimizer: parameter 'fc.weight'".
void CheckTensor(const at::Tensor& tensor, const std::string& what);

// This and the next functions need a tensor that TensorError accepts.
collective::DataType DataTypeOf(const at::Tensor& tensor);

// For a non-overlapping and dense tensor whose elements are sent in memory
// order, with CanonicalStrides().
negotiation::TensorSpec SpecInMemoryOrder(const at::Tensor& tensor);

// Whether `spec` equals SpecInMemoryOrder(tensor).
bool IsSpecOf(const negotiation::TensorSpec& spec, const at::Tensor& tensor);

// The bytes of a non-overlapping and dense tensor, in memory order.
absl::Span<std::byte> BytesOf(const at::Tensor& tensor);

// Whether the elements of both tensors lie in the same order in memory. Strides
// of dimensions of size 1 do not count.
bool SameLayout(const at::Tensor& a, const at::Tensor& b);

// Returns TensorSpec::strides: empty if row-major, otherwise the strides, with
// 1 for dimensions of size 1.
std::vector<int64_t> CanonicalStrides(const at::Tensor& tensor);

// The part of an allreduce's request that follows from its options: collective,
// op, average, scales, compression. `refusal` is the error for options that are
// not supported.
negotiation::Request RequestOf(const AllreduceOptions& options);
// The same, but throws c10::Error for options that are not supported. `what`
// starts the message.
negotiation::Request RequestOf(const AllreduceOptions& options,
                               const std::string& what);
negotiation::Request RequestOf(const ReducescatterOptions& options);

// Why tensors of this dtype cannot be reduced as `request` specifies. Empty if
// they can.
std::string ReductionError(const negotiation::Request& request,
                           collective::DataType dtype);

const char* NameOf(ReduceOp op);  // "Average"

// The memory of one tensor of an operation. Tensors that are passed as bytes
// are non-overlapping and dense.
struct OperationTensors {
  // The contribution of this rank. Undefined: nothing.
  at::Tensor input;
  // Receives the result; may be the same as `input`. Undefined for allgather
  // and alltoall, which allocate it when the operation runs.
  at::Tensor output;
  // What the user gets. If it is not `output` itself, `output` is copied into
  // it. The first thread that asks for the finished operation does the copy, so
  // that it uses that thread's OpenMP team instead of the coordinator's.
  at::Tensor result;
};

std::vector<at::Tensor> ResultsOf(absl::Span<const OperationTensors> tensors);

// Copies results to the user's tensors where these lie elsewhere.
void CopyResults(absl::Span<const OperationTensors> tensors);

// Returns `tensor` without autograd if it is row-major, otherwise a row-major
// copy.
at::Tensor RowMajor(const at::Tensor& tensor);

// Makes row-major tensors for an operation whose result has the shape of
// `tensor`. In place, the result goes into `tensor` itself, by a copy at the
// end if it is not row-major; the elements of `tensor` must not overlap in
// memory. Otherwise the result goes into a new tensor.
OperationTensors RowMajorTensors(const at::Tensor& tensor, bool in_place);

// Whether tensors share memory with each other, or elements of one tensor share
// memory as those of expand() do. Such tensors cannot be written independently.
// All must be supported dense tensors.
bool OverlapInMemory(at::TensorList tensors);

}  // namespace hvdlite::internal
