// Collective operations on tensors.
//
// Every rank calls the same operations; those of one name belong together.
// Different names may be submitted in different orders. Names that are not
// given follow the order of calls, per operation: "allreduce.noname.7"; they
// assume that one thread submits.
//
// Tensors are dense CPU tensors of float32, float64, float16, bfloat16, int32,
// int64, uint8, int8 or bool, of any strides, and of the same shape on all
// ranks.
//
// Errors (c10::Error): a tensor that is not supported, options that are not
// supported, a name that is already in flight on this rank; ranks that differ
// in shape, dtype, op, scale or root: the same text on every rank, naming the
// tensor and the ranks on each side. The world stays healthy after these.
// WorldBroken when it is lost.
#pragma once

#include <ATen/core/Tensor.h>
#include <hvdlite/process_set.h>
#include <hvdlite/work.h>
#include <torch/arg.h>

#include <string>

namespace hvdlite {

// On bool, Sum and Max are logical or, Product and Min logical and; Average is
// refused. The Average of integers is truncated toward zero. Integer sums and
// products wrap around. 16-bit floats are added in float32 and rounded once per
// hop. Adasum is not available yet and refused.
enum class ReduceOp { Average, Sum, Min, Max, Product, Adasum };

// How values travel between nodes. Only None is available yet; the others are
// refused.
enum class Compression { None, FP16, BF16 };

struct AllreduceOptions {
  // Empty: automatic.
  TORCH_ARG(std::string, name);
  TORCH_ARG(ReduceOp, op) = ReduceOp::Average;
  // Multiplied before and after reducing; scaling of integers is done in
  // float64 and truncated toward zero.
  TORCH_ARG(double, prescale_factor) = 1.0;
  TORCH_ARG(double, postscale_factor) = 1.0;
  TORCH_ARG(Compression, compression) = Compression::None;
  TORCH_ARG(ProcessSet, process_set);
};

struct BroadcastOptions {
  // Empty: automatic.
  TORCH_ARG(std::string, name);
  TORCH_ARG(ProcessSet, process_set);
};

// A new tensor, postscale * op over ranks(prescale * tensor). Blocks.
// Differentiable for Average and Sum: backward is the same allreduce of the
// gradient, named "<name>.backward", so all ranks must run it; Min, Max and
// Product refuse a tensor that requires a gradient.
at::Tensor allreduce(const at::Tensor& tensor,
                     const AllreduceOptions& options = {});
// In place; returns `tensor`. Not recorded by autograd.
at::Tensor allreduce_(const at::Tensor& tensor,
                      const AllreduceOptions& options = {});
// As above but returning at once. Not recorded by autograd.
Work allreduce_async(const at::Tensor& tensor,
                     const AllreduceOptions& options = {});
Work allreduce_async_(const at::Tensor& tensor,
                      const AllreduceOptions& options = {});

// A new tensor, equal to rank `root_rank`'s `tensor` (a global rank). Blocks.
// Differentiable: the root's gradient is the sum of all ranks', the others' is
// zero. Backward is an allreduce, so that either all ranks' tensors require a
// gradient, or none does.
at::Tensor broadcast(const at::Tensor& tensor, int root_rank,
                     const BroadcastOptions& options = {});
// In place; returns `tensor`. Not recorded by autograd.
at::Tensor broadcast_(const at::Tensor& tensor, int root_rank,
                      const BroadcastOptions& options = {});
// As above but returning at once. Not recorded by autograd.
Work broadcast_async(const at::Tensor& tensor, int root_rank,
                     const BroadcastOptions& options = {});
Work broadcast_async_(const at::Tensor& tensor, int root_rank,
                      const BroadcastOptions& options = {});

// Returns when every rank has called it.
void barrier(const ProcessSet& process_set = {});

// Returns `bytes` of rank `root_rank`, whose length the others need not know.
std::string broadcast_object(const std::string& bytes, int root_rank);

}  // namespace hvdlite
