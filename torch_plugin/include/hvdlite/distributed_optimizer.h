// DistributedOptimizer: an optimizer that averages gradients over all ranks.
#pragma once

#include <ATen/core/Tensor.h>
#include <hvdlite/ops.h>
#include <hvdlite/process_set.h>
#include <torch/arg.h>
#include <torch/optim/optimizer.h>
#include <torch/ordered_dict.h>
#include <torch/types.h>

#include <cstdint>
#include <memory>
#include <string>
#include <variant>
#include <vector>

namespace hvdlite {
namespace elastic {
class State;
}

// Which gradients are reduced together as one group, like those of a
// grouped_allreduce(). Must be the same on all ranks.
// - 0: no groups; gradients that are ready at the same time are still fused.
// - N: N groups, as equal in bytes as the parameters' order allows.
// - Lists of the optimizer's parameters: one group per list. A parameter is in
//   at most one list; a parameter in no list is reduced alone.
using GradientGroups =
    std::variant<int64_t, std::vector<std::vector<at::Tensor>>>;

using NamedBuffers = torch::OrderedDict<std::string, torch::Tensor>;

struct DistributedOptimizerOptions {
  // Prefix of the operations' names. No other living optimizer may have the
  // same one. Empty: "optimizer0", "optimizer1", ... in the order of
  // construction per process set; this order must then be the same on all ranks
  // of the set.
  TORCH_ARG(std::string, name);
  // Average, Sum or Adasum.
  TORCH_ARG(ReduceOp, op) = ReduceOp::Average;
  // In which type gradients are sent.
  TORCH_ARG(Compression, compression) = Compression::None;
  // How often backward() adds to a gradient before it is reduced. The gradients
  // of the passes add up, as in plain LibTorch; they are not divided by the
  // number of passes.
  TORCH_ARG(int64_t, backward_passes_per_step) = 1;
  // Splits the division of an average: gradients are divided by this factor
  // before the sum, and by size / factor after it. Compressed gradients may
  // need it. Only for op Average.
  TORCH_ARG(double, gradient_predivide_factor) = 1.0;
  TORCH_ARG(GradientGroups, groups) = int64_t{0};
  // Makes sparse gradients (of embeddings) dense before they are reduced.
  // Otherwise synchronize() reduces them like sparse_allreduce(); then op must
  // be Average or Sum.
  TORCH_ARG(bool, sparse_as_dense) = false;
  // The ranks that train together.
  TORCH_ARG(ProcessSet, process_set);
  // Keeps all gradients in one block of memory, which the ranks of a node share
  // if they can. Gradients are reduced there without packing and unpacking.
  // (DDP: gradient_as_bucket_view.) Each gradient has a fixed place in the
  // block. A complete gradient is copied to its place, which is the parameter's
  // grad() from then on; as long as it stays defined, backward() adds to it in
  // place. The option changes neither values nor which parameters have a
  // gradient. Sparse gradients and those of backward() with create_graph stay
  // outside.
  //
  // The block is as large as the gradients of all parameters. It lives until
  // the optimizer and all gradients in it are destroyed. A rank without enough
  // memory logs a warning and continues without the block. Do not change the
  // shape, strides or storage of a gradient in place (resize_, t_, set_). A
  // tensor that shares memory with a gradient changes in each step; clone() it
  // to keep its values.
  TORCH_ARG(bool, gradient_as_fusion_view) = false;
  // Buffers that are compared over the ranks like the parameters
  // (Config::check), for example model->named_buffers(). List only buffers that
  // are the same on all ranks. Running averages of batch normalisation are the
  // same only with SyncBatchNorm.
  TORCH_ARG(NamedBuffers, check_buffers);
};

// Wraps an optimizer and averages its gradients over the ranks. While
// backward() runs, each complete gradient is submitted at once. step() waits
// for all reductions and then runs the wrapped optimizer.
//
//   hvdlite::DistributedOptimizer optimizer(
//       std::make_unique<torch::optim::SGD>(model->parameters(), 0.1),
//       model->named_parameters());
//   ...
//   optimizer.zero_grad();
//   loss.backward();
//   optimizer.step();
//
// Unused parameters: if no rank has a gradient, the parameter stays without
// one. If only some ranks have one, the others contribute zeros and get the
// result.
//
// A gradient that is being reduced must not change. backward() before step() or
// synchronize() throws c10::Error with the parameter's name. To add up several
// backward passes, set backward_passes_per_step.
//
// From time to time the ranks compare their parameters (Config::check), before
// the wrapped optimizer changes them. If they differ, the call that completes
// the reduction (step(), synchronize() or zero_grad()) throws c10::Error on all
// ranks, with a parameter and the ranks. For gradients with NaN or infinity see
// Config::nonfinite_gradients.
//
// Threads: backward() may run in any thread. Use one thread at a time for all
// other calls. The destructor removes the hooks from the parameters and waits
// for operations in flight. When an exception unwinds the stack, it first makes
// this rank leave the world: the other ranks then fail with WorldBroken instead
// of waiting forever. To continue after an error that all ranks got, catch it
// in the optimizer's scope.
class DistributedOptimizer {
 public:
  // `named_parameters` holds each of the optimizer's parameters once, in the
  // same order and under the same names on all ranks. Other tensors in it are
  // ignored. Throws c10::Error before init() and for options that are not
  // valid.
  explicit DistributedOptimizer(
      std::unique_ptr<torch::optim::Optimizer> optimizer,
      const torch::OrderedDict<std::string, torch::Tensor>& named_parameters,
      const DistributedOptimizerOptions& options = {});
  ~DistributedOptimizer();
  DistributedOptimizer(DistributedOptimizer&&) noexcept;
  DistributedOptimizer& operator=(DistributedOptimizer&&) noexcept;

  // Calls synchronize(), unless it was just called, and then the wrapped
  // optimizer's step(). With a closure, each call by the wrapped optimizer runs
  // the closure and then synchronize(). The optimizer sees, and step() returns,
  // the loss averaged over the ranks, for any `op`. So an optimizer that
  // compares losses with gradients, such as LBFGS, needs op Average. Throws
  // what synchronize() throws; parameters are unchanged then, and nothing is in
  // flight.
  torch::Tensor step(torch::optim::Optimizer::LossClosure closure = nullptr);

  // Waits for operations in flight. Then removes the gradients of all
  // parameters or, if `set_to_none` is false, fills them with zeros.
  //
  // To skip a step, for example after a loss that is not finite or after an
  // exception in backward(), all ranks call synchronize() and then zero_grad().
  // Gradients that a rank has not computed by then count as absent. zero_grad()
  // alone is not enough if some rank may not have completed backward(). If a
  // rank drops gradients of a step that other ranks take, the next
  // synchronize() throws on all ranks. Then call zero_grad() on all ranks and
  // continue with the same step everywhere.
  void zero_grad(bool set_to_none = true);

  // Blocks until every gradient holds its reduced value. Call it before step(),
  // for example to clip gradients. Collective. Throws c10::Error or
  // WorldBroken. Gradients are unspecified then; call zero_grad() and repeat
  // the step.
  void synchronize();

  // Number of steps that all ranks skipped because a reduced gradient was not
  // finite (Config::nonfinite_gradients): step() returned, but changed no
  // parameter. With loss scaling, lower the scale when this number grows.
  // synchronize() does the check, so later changes of a gradient do not matter.
  int64_t skipped_steps() const;

  // The wrapped optimizer, for learning-rate schedulers. Its address stays
  // valid when the DistributedOptimizer is moved. Do not call its step() or
  // zero_grad(): gradients would be used before they are reduced.
  torch::optim::Optimizer& inner();
  const torch::optim::Optimizer& inner() const;

 private:
  friend void broadcast_optimizer_state(DistributedOptimizer& optimizer,
                                        int root_rank,
                                        const ProcessSet& process_set);
  friend class elastic::State;

  const ProcessSet& process_set() const;
  // Continues in the current world of this process.
  void Rejoin();

  class Impl;
  Impl& impl() const;
  std::unique_ptr<Impl> impl_;
};

}  // namespace hvdlite
