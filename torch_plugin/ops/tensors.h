// What tensors and options the library takes, how they look as bytes, and how
// tensors of any strides are brought into the form that operations take.
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

// Empty if `tensor` is a dense CPU tensor of a supported dtype; else what is
// wrong with it and what to do, for Request::local_error: "the tensor is
// undefined".
std::string TensorError(const at::Tensor& tensor);

// Throws c10::Error where TensorError() is not empty; `what` starts the
// message: "DistributedOptimizer: parameter 'fc.weight'".
void CheckTensor(const at::Tensor& tensor, const std::string& what);

// Of a tensor that TensorError accepts, as of the next functions.
collective::DataType DataTypeOf(const at::Tensor& tensor);

// For a non-overlapping and dense tensor whose elements travel as they lie in
// memory: with CanonicalStrides().
negotiation::TensorSpec SpecInMemoryOrder(const at::Tensor& tensor);

// Whether `spec` is what SpecInMemoryOrder(tensor) returns.
bool IsSpecOf(const negotiation::TensorSpec& spec, const at::Tensor& tensor);

// The bytes of a non-overlapping and dense tensor, in memory order.
absl::Span<std::byte> BytesOf(const at::Tensor& tensor);

// Whether the elements of both lie in the same order in memory; strides of
// dimensions of size 1 do not count.
bool SameLayout(const at::Tensor& a, const at::Tensor& b);

// For TensorSpec::strides: empty if row-major; else the strides, with 1 for
// dimensions of size 1.
std::vector<int64_t> CanonicalStrides(const at::Tensor& tensor);

// The part of an allreduce's request that follows from its options: collective,
// op, average, scales, compression; and `refusal` for what is not possible.
negotiation::Request RequestOf(const AllreduceOptions& options);
// As above, but throws c10::Error for what is not possible; `what` starts the
// message.
negotiation::Request RequestOf(const AllreduceOptions& options,
                               const std::string& what);
negotiation::Request RequestOf(const ReducescatterOptions& options);

// Why tensors of this dtype cannot be reduced as `request` says; empty if they
// can.
std::string ReductionError(const negotiation::Request& request,
                           collective::DataType dtype);

const char* NameOf(ReduceOp op);  // "Average"

// The memory of one tensor of an operation; what is given as bytes is
// non-overlapping and dense.
struct OperationTensors {
  // What this rank contributes; undefined: nothing.
  at::Tensor input;
  // Gets the result; may be `input`. Undefined where it is allocated when the
  // operation runs (allgather, alltoall).
  at::Tensor output;
  // What the user gets. Where it is not `output` itself, `output` is copied
  // into it, in the thread that asks first once the operation is done (so that
  // copying uses that thread's OpenMP team, and not the coordinator).
  at::Tensor result;
};

std::vector<at::Tensor> ResultsOf(absl::Span<const OperationTensors> tensors);

// Copies results that do not lie where the user gets them.
void CopyResults(absl::Span<const OperationTensors> tensors);

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
