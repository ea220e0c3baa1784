// What tensors and options the library takes, and how they look as bytes.
#pragma once

#include <ATen/core/Tensor.h>
#include <hvdlite/ops.h>

#include <cstddef>
#include <cstdint>
#include <string>
#include <vector>

#include "absl/types/span.h"
#include "collective/data_type.h"
#include "negotiation/request.h"

namespace hvdlite::internal {

// Throws c10::Error unless `tensor` is a dense CPU tensor of a supported dtype;
// `what` starts the message: "allreduce", "the gradient of 'fc.weight'".
void CheckTensor(const at::Tensor& tensor, const std::string& what);

// Of a tensor that CheckTensor accepts.
collective::DataType DataTypeOf(const at::Tensor& tensor);

// The bytes of a non-overlapping and dense tensor, in memory order.
absl::Span<std::byte> BytesOf(const at::Tensor& tensor);

// Whether the elements of both lie in the same order in memory; strides of
// dimensions of size 1 do not count.
bool SameLayout(const at::Tensor& a, const at::Tensor& b);

// For Request::strides: empty if row-major; else the strides, with 1 for
// dimensions of size 1.
std::vector<int64_t> CanonicalStrides(const at::Tensor& tensor);

// The part of an allreduce's request that follows from its options: op,
// average, scales. Throws c10::Error for what is not available.
negotiation::Request RequestOf(const AllreduceOptions& options,
                               const std::string& what);

const char* NameOf(ReduceOp op);  // "Average"

}  // namespace hvdlite::internal
