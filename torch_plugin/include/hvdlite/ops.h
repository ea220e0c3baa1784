// Collective operations on tensors.
//
//   const at::Tensor average = hvdlite::allreduce(tensor);
//   hvdlite::Work work = hvdlite::allreduce_async_(
//       tensor, hvdlite::AllreduceOptions().op(hvdlite::ReduceOp::Sum));
//   ... compute ...
//   work.wait();
//
// Names: every rank of the process set (by default: of the world) calls the
// same operations. The k-th operations with the same name on all ranks belong
// together, also while earlier ones are in flight. Operations with different
// names may be submitted in different orders. If no name is given, hvdlite
// numbers the calls per operation and process set ("allreduce.noname.7"); then
// one thread has to make all these calls, in the same order on all ranks. Names
// with "@process_set." in them are reserved.
//
// Tensors: dense CPU tensors of any strides. dtype: float32, float64, float16,
// bfloat16, int64, int32, int16, int8, uint8, bool, complex64 or complex128,
// and with LibTorch 2.3 or later uint64, uint32 or uint16. Shapes are the same
// on all ranks, except for the first dimension in allgather and alltoall.
//
// Errors: a reserved name, and a process set without this rank, throw
// c10::Error immediately, on this rank only. All other errors throw c10::Error
// with the same text on every rank of the process set, with the operation and
// the ranks that differ. Examples are a tensor or option that is not supported,
// and ranks that differ in shape, dtype, op, scale, root or whether gradients
// are recorded. Asynchronous forms throw in wait(). The world can still be used
// afterwards. WorldBroken is thrown when the world is lost.
//
// Gradients: autograd records the forms that neither work in place nor return a
// Work. The gradient is that of the sum of all ranks' losses. Backward is also
// a collective operation, "<name>.backward": all ranks of the process set run
// it or none does, and the tensors of all ranks require a gradient or none
// does.
#pragma once

#include <ATen/core/Tensor.h>
#include <hvdlite/process_set.h>
#include <hvdlite/work.h>
#include <torch/arg.h>

#include <string>
#include <tuple>
#include <vector>

namespace hvdlite {

// How tensors are reduced.
//
// - bool: Sum and Max are logical or, Product and Min logical and. Average is
//   not supported.
// - Integers: Average is the sum divided by the number of ranks, truncated
//   toward zero. Sums and products wrap around.
// - 16-bit floats are added in float32 and rounded once per hop. Intermediate
//   values of an Average do not overflow.
// - Complex numbers support Average and Sum, on the real and imaginary parts.
//
// Adasum combines pairs of ranks. Orthogonal tensors are added, parallel ones
// are averaged: a (1 - a.b / 2a.a) + b (1 - a.b / 2b.b) (Maleki et al.,
// "Scaling Distributed Training with Adaptive Summation", 2020). It supports
// floats and any number of ranks. The learning rate need not be scaled with the
// number of ranks.
enum class ReduceOp { Average, Sum, Min, Max, Product, Adasum };

// The type in which float32 and float64 are sent through MPI, for example
// between nodes. Values are added in float32 and rounded to this type once per
// hop. Other types, also complex ones, are not compressed.
enum class Compression { None, FP16, BF16 };

struct AllreduceOptions {
  // Empty: numbered automatically.
  TORCH_ARG(std::string, name);
  TORCH_ARG(ReduceOp, op) = ReduceOp::Average;
  // Factors before and after the reduction. Integers are multiplied in float64,
  // truncated toward zero and limited to the range of their type.
  TORCH_ARG(double, prescale_factor) = 1.0;
  TORCH_ARG(double, postscale_factor) = 1.0;
  TORCH_ARG(Compression, compression) = Compression::None;
  TORCH_ARG(ProcessSet, process_set);
};

struct AllgatherOptions {
  // Empty: numbered automatically.
  TORCH_ARG(std::string, name);
  TORCH_ARG(ProcessSet, process_set);
};

struct BroadcastOptions {
  // Empty: numbered automatically.
  TORCH_ARG(std::string, name);
  TORCH_ARG(ProcessSet, process_set);
};

struct AlltoallOptions {
  // Empty: numbered automatically.
  TORCH_ARG(std::string, name);
  TORCH_ARG(ProcessSet, process_set);
};

struct ReducescatterOptions {
  // Empty: numbered automatically.
  TORCH_ARG(std::string, name);
  // Average, Sum, Min, Max or Product.
  TORCH_ARG(ReduceOp, op) = ReduceOp::Average;
  // Like those of AllreduceOptions.
  TORCH_ARG(double, prescale_factor) = 1.0;
  TORCH_ARG(double, postscale_factor) = 1.0;
  TORCH_ARG(ProcessSet, process_set);
};

// Returns a new tensor: postscale * op over ranks(prescale * tensor). Blocks.
// Differentiable for Average and Sum: backward is the same allreduce of the
// gradient. Throws c10::Error for Min, Max, Product and Adasum if the tensor
// requires a gradient.
at::Tensor allreduce(const at::Tensor& tensor,
                     const AllreduceOptions& options = {});
// Reduces in place and returns `tensor`. Not recorded by autograd.
at::Tensor allreduce_(const at::Tensor& tensor,
                      const AllreduceOptions& options = {});
// Like the above, but return immediately. Not recorded by autograd.
Work allreduce_async(const at::Tensor& tensor,
                     const AllreduceOptions& options = {});
Work allreduce_async_(const at::Tensor& tensor,
                      const AllreduceOptions& options = {});

// Reduce a group of tensors in one operation with one name. Their number,
// shapes and dtypes are the same on all ranks; dtypes may differ within the
// group. The reduction starts when all ranks have submitted the group, and
// succeeds or fails for the whole group. The group may be empty on all ranks.
std::vector<at::Tensor> grouped_allreduce(at::TensorList tensors,
                                          const AllreduceOptions& options = {});
std::vector<at::Tensor> grouped_allreduce_(
    at::TensorList tensors, const AllreduceOptions& options = {});
GroupWork grouped_allreduce_async(at::TensorList tensors,
                                  const AllreduceOptions& options = {});
GroupWork grouped_allreduce_async_(at::TensorList tensors,
                                   const AllreduceOptions& options = {});

// Returns a new tensor: the ranks' tensors concatenated along dimension 0 in
// rank order. Dimension 0 may differ by rank and may be 0; the other dimensions
// are the same. Tensors need at least one dimension. Blocks. Differentiable:
// backward sums the gradients of this rank's rows over all ranks.
at::Tensor allgather(const at::Tensor& tensor,
                     const AllgatherOptions& options = {});
Work allgather_async(const at::Tensor& tensor,
                     const AllgatherOptions& options = {});
std::vector<at::Tensor> grouped_allgather(at::TensorList tensors,
                                          const AllgatherOptions& options = {});
GroupWork grouped_allgather_async(at::TensorList tensors,
                                  const AllgatherOptions& options = {});

// Returns a new tensor that equals `tensor` of rank `root_rank`, a global rank
// that is in the process set. Blocks. Differentiable: the root's gradient is
// the sum over all ranks; the gradient of the other ranks is zero.
at::Tensor broadcast(const at::Tensor& tensor, int root_rank,
                     const BroadcastOptions& options = {});
// Broadcasts in place and returns `tensor`. Not recorded by autograd.
at::Tensor broadcast_(const at::Tensor& tensor, int root_rank,
                      const BroadcastOptions& options = {});
// Like the above, but return immediately. Not recorded by autograd.
Work broadcast_async(const at::Tensor& tensor, int root_rank,
                     const BroadcastOptions& options = {});
Work broadcast_async_(const at::Tensor& tensor, int root_rank,
                      const BroadcastOptions& options = {});

// Sends splits[r] rows (along dimension 0) to each rank r of the process set,
// in rank order. Returns {rows from all ranks in rank order, received_splits}.
// `splits` [size of the set] has dtype int32 or int64. Its values are not
// negative and add up to the length of dimension 0. If it is undefined or
// empty, the splits are equal, and the length must be a multiple of the set's
// size. received_splits has the dtype of `splits`, by default int32. Blocks.
// Differentiable: backward sends the gradients of the rows back.
std::tuple<at::Tensor, at::Tensor> alltoall(
    const at::Tensor& tensor, const at::Tensor& splits = {},
    const AlltoallOptions& options = {});
AlltoallWork alltoall_async(const at::Tensor& tensor,
                            const at::Tensor& splits = {},
                            const AlltoallOptions& options = {});

// Returns a new tensor: this rank's rows of the reduced tensor. Each rank of
// the process set gets length / size rows, where length is that of dimension 0.
// The first (length % size) ranks get one row more. Tensors need at least one
// dimension. Blocks. Differentiable for Average and Sum: backward gathers the
// gradients.
at::Tensor reducescatter(const at::Tensor& tensor,
                         const ReducescatterOptions& options = {});
Work reducescatter_async(const at::Tensor& tensor,
                         const ReducescatterOptions& options = {});
std::vector<at::Tensor> grouped_reducescatter(
    at::TensorList tensors, const ReducescatterOptions& options = {});
GroupWork grouped_reducescatter_async(at::TensorList tensors,
                                      const ReducescatterOptions& options = {});

// Sums or averages sparse COO tensors of the same shape. Their number of values
// may differ and may be zero. `coo` is coalesced first; the result is
// coalesced. Values are sent as sparse or as dense tensors, whichever is
// smaller. op: Average or Sum; compression applies to the values. Blocks. Not
// recorded by autograd.
at::Tensor sparse_allreduce(const at::Tensor& coo,
                            const AllreduceOptions& options = {});

// Blocks until every rank of the process set has called it.
void barrier(const ProcessSet& process_set = {});

// Declares that this rank has no more data. Blocks until all ranks have called
// join(), and returns the rank that was last. Until then this rank takes part
// in the operations of the others with neutral elements: zeros for Sum, Average
// and Adasum, ones for Product, the largest and smallest values for Min and
// Max, no rows in allgather. Averages divide by the number of ranks that
// contributed data (with Config::join_average_over_world by the size of the
// process set). Operations that need the data of every rank fail on all ranks
// meanwhile: a broadcast whose root has joined, alltoall, reducescatter,
// add_process_set and remove_process_set. This rank's own pending operations
// complete first.
int join();

// Returns `bytes` of rank `root_rank`, a global rank. The other ranks need not
// know its length.
std::string broadcast_object(const std::string& bytes, int root_rank,
                             const ProcessSet& process_set = {});

// Returns the `bytes` of all ranks of the process set, in rank order. Their
// lengths may differ.
std::vector<std::string> allgather_object(const std::string& bytes,
                                          const ProcessSet& process_set = {});

}  // namespace hvdlite
