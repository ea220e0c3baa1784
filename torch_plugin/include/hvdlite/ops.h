// Collective operations on tensors.
//
// Every rank of the process set (by default: of the world) calls the same
// operations; the k-th of one name belong together, also while earlier ones are
// in flight. Different names may be submitted in different orders. Names not
// given follow the order of calls by one thread, per operation and process set:
// "allreduce.noname.7". Names with "@process_set." in them are reserved.
//
// Tensors are dense CPU tensors of float32, float64, float16, bfloat16, int64,
// int32, int16, int8, uint8, bool, complex64 or complex128, where LibTorch has
// them (2.3 and later) also of uint64, uint32 or uint16; of any strides. Shapes
// are the same on all ranks, but for the first dimension in allgather and
// alltoall.
//
// Errors (c10::Error): a reserved name, and a process set that this rank is not
// in, are errors at once, on this rank alone.
// Everything else that is wrong with an operation - a tensor or option that is
// not supported on some rank, ranks that differ in shape, dtype, op, scale,
// root or whether gradients are recorded - is the same text on every rank of
// the process set, naming the operation and the ranks on each side;
// asynchronous forms throw it from wait(). The world stays healthy after these.
// WorldBroken when it is lost.
//
// Gradients: forms that neither work in place nor return a Work are recorded by
// autograd. The gradient is that of the sum of all ranks' losses. Backward is a
// collective operation, too, named "<name>.backward": all ranks of the process
// set run it or none, and all of their tensors require a gradient or none.
#pragma once

#include <ATen/core/Tensor.h>
#include <hvdlite/process_set.h>
#include <hvdlite/work.h>
#include <torch/arg.h>

#include <string>
#include <tuple>
#include <vector>

namespace hvdlite {

// On bool, Sum and Max are logical or, Product and Min logical and; Average is
// refused. The Average of integers is their sum (which wraps around) over the
// number of ranks, exactly, truncated toward zero; integer products wrap, too.
// 16-bit floats are added in float32 and rounded once per hop; averages do not
// overflow on the way. Complex numbers have Average and Sum, part by part.
//
// Adasum combines pairs of ranks so that orthogonal tensors add up and parallel
// ones are averaged: a (1 - a.b / 2a.a) + b (1 - a.b / 2b.b) (Maleki et al.,
// "Scaling Distributed Training with Adaptive Summation", 2020). For floats,
// any number of ranks; the learning rate need not be scaled with it.
enum class ReduceOp { Average, Sum, Min, Max, Product, Adasum };

// In which type MPI carries float32 and float64, as between nodes: added in
// float32 and rounded to it once per hop. Other types, complex ones among them,
// are not compressed.
enum class Compression { None, FP16, BF16 };

struct AllreduceOptions {
  // Empty: automatic.
  TORCH_ARG(std::string, name);
  TORCH_ARG(ReduceOp, op) = ReduceOp::Average;
  // Multiplied before and after reducing: integers in float64, each time
  // truncated toward zero and limited to their type's range.
  TORCH_ARG(double, prescale_factor) = 1.0;
  TORCH_ARG(double, postscale_factor) = 1.0;
  TORCH_ARG(Compression, compression) = Compression::None;
  TORCH_ARG(ProcessSet, process_set);
};

struct AllgatherOptions {
  // Empty: automatic.
  TORCH_ARG(std::string, name);
  TORCH_ARG(ProcessSet, process_set);
};

struct BroadcastOptions {
  // Empty: automatic.
  TORCH_ARG(std::string, name);
  TORCH_ARG(ProcessSet, process_set);
};

struct AlltoallOptions {
  // Empty: automatic.
  TORCH_ARG(std::string, name);
  TORCH_ARG(ProcessSet, process_set);
};

struct ReducescatterOptions {
  // Empty: automatic.
  TORCH_ARG(std::string, name);
  // Average, Sum, Min, Max or Product.
  TORCH_ARG(ReduceOp, op) = ReduceOp::Average;
  // As AllreduceOptions'.
  TORCH_ARG(double, prescale_factor) = 1.0;
  TORCH_ARG(double, postscale_factor) = 1.0;
  TORCH_ARG(ProcessSet, process_set);
};

// A new tensor, postscale * op over ranks(prescale * tensor). Blocks.
// Differentiable for Average and Sum: backward is the same allreduce of the
// gradient; Min, Max, Product and Adasum refuse a tensor that requires a
// gradient.
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

// Reduces a group of tensors together, of the same number, shapes and dtypes on
// all ranks (dtypes may differ within the group): none of them before all are
// submitted by all ranks, all in one go, all or none with success. One name for
// the group, which may be empty (on all ranks).
std::vector<at::Tensor> grouped_allreduce(at::TensorList tensors,
                                          const AllreduceOptions& options = {});
std::vector<at::Tensor> grouped_allreduce_(
    at::TensorList tensors, const AllreduceOptions& options = {});
GroupWork grouped_allreduce_async(at::TensorList tensors,
                                  const AllreduceOptions& options = {});
GroupWork grouped_allreduce_async_(at::TensorList tensors,
                                   const AllreduceOptions& options = {});

// A new tensor, the ranks' tensors one after the other along dimension 0, whose
// length may differ by rank (also zero); the other dimensions agree. At least
// one dimension. Blocks. Differentiable: backward sums the gradients of this
// rank's rows over all ranks.
at::Tensor allgather(const at::Tensor& tensor,
                     const AllgatherOptions& options = {});
Work allgather_async(const at::Tensor& tensor,
                     const AllgatherOptions& options = {});
std::vector<at::Tensor> grouped_allgather(at::TensorList tensors,
                                          const AllgatherOptions& options = {});
GroupWork grouped_allgather_async(at::TensorList tensors,
                                  const AllgatherOptions& options = {});

// A new tensor, equal to rank `root_rank`'s `tensor` (a global rank, in the
// process set). Blocks. Differentiable: the root's gradient is the sum of all
// ranks', the others' is zero.
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

// Sends splits[r] rows (along dimension 0) to each rank r of the process set in
// rank order, and returns {rows from all ranks in rank order, received_splits}.
// `splits`: int32 or int64, as many as the set has ranks, not negative, adding
// up to the length of dimension 0; undefined or empty: equal splits, and then
// that length must be a multiple of the set's size. received_splits has the
// dtype of `splits`, int32 where that is not given. Blocks. Differentiable:
// backward sends the gradients' rows back.
std::tuple<at::Tensor, at::Tensor> alltoall(
    const at::Tensor& tensor, const at::Tensor& splits = {},
    const AlltoallOptions& options = {});
AlltoallWork alltoall_async(const at::Tensor& tensor,
                            const at::Tensor& splits = {},
                            const AlltoallOptions& options = {});

// A new tensor, this rank's rows of the reduced tensor: along dimension 0 each
// rank of the process set gets length / size rows, the first length % size
// ranks one more. At least one dimension. Blocks. Differentiable for Average
// and Sum: backward gathers the gradients.
at::Tensor reducescatter(const at::Tensor& tensor,
                         const ReducescatterOptions& options = {});
Work reducescatter_async(const at::Tensor& tensor,
                         const ReducescatterOptions& options = {});
std::vector<at::Tensor> grouped_reducescatter(
    at::TensorList tensors, const ReducescatterOptions& options = {});
GroupWork grouped_reducescatter_async(at::TensorList tensors,
                                      const ReducescatterOptions& options = {});

// Sums (or averages) sparse COO tensors of the same shape, which may differ in
// their number of values (also zero). `coo` is coalesced first; the result is
// coalesced. Values travel as they are, or as a dense tensor where that is
// smaller. op: Average or Sum; compression applies to the values. Blocks. Not
// recorded by autograd.
at::Tensor sparse_allreduce(const at::Tensor& coo,
                            const AllreduceOptions& options = {});

// Returns when every rank of the process set has called it.
void barrier(const ProcessSet& process_set = {});

// This rank has no more data: until all ranks have called join(), it takes part
// in what the others submit with neutral elements (zeros for Sum, Average and
// Adasum, ones for Product, the largest and smallest values for Min and Max, no
// rows in allgather). Blocks until all ranks have, and returns the rank that
// was last. Averages divide by the number of ranks that took part
// (Config::join_average_over_world: by the size of the process set). Operations
// that cannot do without a rank's data fail on all ranks meanwhile: a broadcast
// whose root has joined, alltoall, reducescatter, add_process_set and
// remove_process_set. This rank's own pending operations come first.
int join();

// Returns `bytes` of rank `root_rank` (a global rank), whose length the others
// need not know.
std::string broadcast_object(const std::string& bytes, int root_rank,
                             const ProcessSet& process_set = {});

// The `bytes` of all ranks of the process set, in rank order.
std::vector<std::string> allgather_object(const std::string& bytes,
                                          const ProcessSet& process_set = {});

}  // namespace hvdlite
