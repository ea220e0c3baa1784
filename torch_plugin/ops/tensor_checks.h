// What tensors and options the library takes, and how they look as bytes.
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
// wrong with it and what to do, for Request::refusal: "the tensor is
// undefined".
std::string TensorRefusal(const at::Tensor& tensor);

// Throws c10::Error where TensorRefusal() is not empty; `what` starts the
// message: "DistributedOptimizer: parameter 'fc.weight'".
void CheckTensor(const at::Tensor& tensor, const std::string& what);

// Of a tensor that TensorRefusal accepts, as of the next functions.
collective::DataType DataTypeOf(const at::Tensor& tensor);

// For a tensor whose elements travel in row-major order.
negotiation::TensorSpec RowMajorSpec(const at::Tensor& tensor);
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
std::string ReductionRefusal(const negotiation::Request& request,
                             collective::DataType dtype);

const char* NameOf(ReduceOp op);  // "Average"

}  // namespace hvdlite::internal
