// DistributedOptimizer: an optimizer whose gradients are averaged over ranks.
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

// Which gradients are reduced together, atomically, as by grouped_allreduce().
// 0: each by itself (the coordinator fuses what is ready). N: N groups of as
// equal size in bytes as the parameters' order allows. Or lists of the
// optimizer's parameters, each in one list at most; the others are reduced each
// by itself. The same on all ranks.
using GradientGroups =
    std::variant<int64_t, std::vector<std::vector<at::Tensor>>>;

using NamedBuffers = torch::OrderedDict<std::string, torch::Tensor>;

struct DistributedOptimizerOptions {
  // Prefix of the operations' names. Empty: "optimizer0", "optimizer1", ... in
  // the order of construction per process set, which must then be the same on
  // all its ranks. No other optimizer may have it meanwhile.
  TORCH_ARG(std::string, name);
  // Average, Sum or Adasum.
  TORCH_ARG(ReduceOp, op) = ReduceOp::Average;
  // How gradients travel.
  TORCH_ARG(Compression, compression) = Compression::None;
  // How often backward() adds to a gradient before it is reduced. The passes'
  // gradients add up, as in plain LibTorch; they are not divided.
  TORCH_ARG(int64_t, backward_passes_per_step) = 1;
  // Average in two parts: divide by this before the sum and by
  // size / this after it. Compressed gradients may need it. op Average only.
  TORCH_ARG(double, gradient_predivide_factor) = 1.0;
  TORCH_ARG(GradientGroups, groups) = int64_t{0};
  // Sparse gradients (of embeddings) become dense ones before they are reduced.
  // Otherwise they are reduced as by sparse_allreduce(), in synchronize(); op
  // Average or Sum only.
  TORCH_ARG(bool, sparse_as_dense) = false;
  // The ranks that train together.
  TORCH_ARG(ProcessSet, process_set);
  // Gradients lie in one piece of memory, which the ranks of a node share where
  // they can, each always in the same place, and are reduced there without
  // being packed and unpacked. Once complete, a gradient that backward() has
  // made, or the program has set, is copied to its place and becomes the
  // parameter's grad() from then on; while that stays defined, backward() adds
  // to it in place. Values are those without this option, and so is which
  // parameters have a gradient; a sparse gradient, and one that backward()
  // makes with create_graph, has no place.
  //
  // The memory, as much as the gradients of all parameters take, lives until
  // the optimizer and all gradients in it are gone. Without enough of it a rank
  // warns, and does without. Do not change shape, strides or storage of a
  // gradient in place (resize_, t_, set_). What shares a gradient's memory
  // changes with each step; clone() what is to be kept.
  TORCH_ARG(bool, gradient_as_fusion_view) = false;
  // Compared over the ranks as the parameters are (Config::check):
  // model->named_buffers(), say, where these are to be the same on all ranks.
  // Running averages of batch norms are not, but with SyncBatchNorm.
  TORCH_ARG(NamedBuffers, check_buffers);
};

// Wraps an optimizer. While backward() runs, each gradient is handed to the
// coordinator as soon as it is complete; step() waits for all of them, and then
// runs the wrapped optimizer.
//
// A parameter without a gradient on all ranks stays without; where only some
// ranks have one, the others count as zeros and get the result.
//
// A gradient that is being reduced must not change: backward() before step() or
// synchronize() throws c10::Error naming the parameter. To add up several
// backward passes, set backward_passes_per_step.
//
// The ranks' parameters are compared now and then (Config::check), before the
// wrapped optimizer changes them: where they differ, step(), synchronize() or
// zero_grad(), whichever ends the reduction, throws c10::Error on all ranks,
// which names a parameter and the ranks. Gradients with NaN or infinity:
// Config::nonfinite_gradients.
//
// Threads: backward() may run in any thread, everything else in one at a time.
// The parameters' hooks die with the optimizer. Destroying it waits for what is
// in flight; when an exception is unwinding the stack, whatever it is, this
// rank first leaves the world, so that the other ranks fail (WorldBroken)
// rather than wait for ever. To go on after an error that all ranks got, catch
// it in the optimizer's scope.
class DistributedOptimizer {
 public:
  // `named_parameters` holds each of the optimizer's parameters once (others
  // are ignored), on all ranks in the same order under the same names. init()
  // must have been called. Throws c10::Error.
  explicit DistributedOptimizer(
      std::unique_ptr<torch::optim::Optimizer> optimizer,
      const torch::OrderedDict<std::string, torch::Tensor>& named_parameters,
      const DistributedOptimizerOptions& options = {});
  ~DistributedOptimizer();
  DistributedOptimizer(DistributedOptimizer&&) noexcept;
  DistributedOptimizer& operator=(DistributedOptimizer&&) noexcept;

  // synchronize(), unless that was just called, then the wrapped optimizer's
  // step(). With a closure: that runs first, synchronize() follows it, on each
  // of the wrapped optimizer's calls, and the loss averaged over the ranks is
  // what the optimizer sees and what is returned, whatever `op` is: an
  // optimizer that compares losses with gradients, as LBFGS does, needs op
  // Average. Throws what synchronize() throws; parameters are then unchanged
  // and nothing is in flight.
  torch::Tensor step(torch::optim::Optimizer::LossClosure closure = nullptr);

  // Waits for what is in flight, then drops the gradients of all parameters, or
  // fills them with zeros.
  //
  // To skip a step (after a loss that is not finite, or a backward() that
  // threw, say), all ranks call synchronize() and then zero_grad(); whatever a
  // rank has computed until then, its other gradients are absent. Not
  // zero_grad() alone where some rank may not have come through backward().
  // Where a rank skips gradients of a step that others take, synchronize()
  // throws on all ranks the next time; zero_grad() on all, and go on alike.
  void zero_grad(bool set_to_none = true);

  // Blocks until every gradient holds its reduced value; call it before step()
  // to clip gradients, say. Collective. Throws c10::Error or WorldBroken;
  // gradients are then unspecified: zero_grad() and repeat.
  void synchronize();

  // Steps that were left out on all ranks because a reduced gradient was not
  // finite (Config::nonfinite_gradients): step() returned, but changed no
  // parameter. To scale losses, lower the scale where this has grown. What is
  // not finite is found by synchronize(), whatever becomes of it until step().
  int64_t skipped_steps() const;

  // The wrapped optimizer, for learning-rate schedulers. Its address survives
  // moves of the DistributedOptimizer. Do not call its step() or zero_grad():
  // the ranks would fall out of step.
  torch::optim::Optimizer& inner();
  const torch::optim::Optimizer& inner() const;

 private:
  friend void broadcast_optimizer_state(DistributedOptimizer& optimizer,
                                        int root_rank,
                                        const ProcessSet& process_set);
  friend class elastic::State;

  const ProcessSet& process_set() const;
  // Goes on in the process's present world.
  void Rejoin();

  class Impl;
  Impl& impl() const;
  std::unique_ptr<Impl> impl_;
};

}  // namespace hvdlite
