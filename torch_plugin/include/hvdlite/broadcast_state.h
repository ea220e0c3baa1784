// Makes all ranks start from the model and the optimizer of one rank.
//
//   hvdlite::broadcast_parameters(model, /*root_rank=*/0);
//   hvdlite::broadcast_optimizer_state(optimizer, /*root_rank=*/0);
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

// Overwrites parameters and buffers in place with those of rank `root_rank`, a
// global rank that is in the process set. Collective; blocks. Throws c10::Error
// on all ranks if some ranks lack a tensor; nothing is overwritten then. Throws
// it on all ranks, too, if shapes or dtypes differ; other tensors may have been
// overwritten then. Elements may share memory, as those of expand() do. Make
// one call at a time per process set, since the ranks first compare the names.
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
// with those of rank `root_rank`, through LibTorch's archives. The state of the
// other ranks may be empty. Collective; blocks. All ranks need the same type of
// optimizer with the same parameter groups. All optimizers of LibTorch are
// supported, LBFGS included. Throws c10::Error on all ranks if they differ.
void broadcast_optimizer_state(torch::optim::Optimizer& optimizer,
                               int root_rank,
                               const ProcessSet& process_set = {});
// Without a process set, or with the set of all ranks, uses the optimizer's own
// process set.
void broadcast_optimizer_state(DistributedOptimizer& optimizer, int root_rank,
                               const ProcessSet& process_set = {});

}  // namespace hvdlite
