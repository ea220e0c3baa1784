// Makes all ranks start from one rank's model and optimizer.
#pragma once

#include <ATen/core/Tensor.h>
#include <hvdlite/process_set.h>
#include <torch/nn/module.h>
#include <torch/nn/pimpl.h>
#include <torch/optim/optimizer.h>
#include <torch/ordered_dict.h>

#include <string>

namespace hvdlite {

class DistributedOptimizer;

// Overwrites parameters and buffers with rank `root_rank`'s (a global rank, in
// the process set), in place. Blocks. Collective. A tensor that some ranks do
// not have is a c10::Error on all, and nothing is overwritten; so is a
// difference in shape or dtype, but other tensors may have been overwritten.
// Elements may share memory, as those of expand(): they are written as one.
// One call at a time for a process set: they agree on the names first.
void broadcast_parameters(const torch::nn::Module& module, int root_rank,
                          const ProcessSet& process_set = {});
void broadcast_parameters(
    const torch::OrderedDict<std::string, at::Tensor>& tensors, int root_rank,
    const ProcessSet& process_set = {});

// For module holders, such as torch::nn::Linear or TORCH_MODULE(Net)'s Net.
template <typename Contained>
void broadcast_parameters(const torch::nn::ModuleHolder<Contained>& module,
                          int root_rank, const ProcessSet& process_set = {}) {
  broadcast_parameters(static_cast<const torch::nn::Module&>(*module),
                       root_rank, process_set);
}

// Overwrites options (such as the learning rate) and state (such as momentum)
// with rank `root_rank`'s, through LibTorch's archives; the other ranks' state
// may be empty. Blocks. The optimizers are of one type with the same parameter
// groups: any of LibTorch's, LBFGS included.
void broadcast_optimizer_state(torch::optim::Optimizer& optimizer,
                               int root_rank,
                               const ProcessSet& process_set = {});
// By default, and for the set of all ranks, among the ranks of the optimizer's
// own process set.
void broadcast_optimizer_state(DistributedOptimizer& optimizer, int root_rank,
                               const ProcessSet& process_set = {});

}  // namespace hvdlite
