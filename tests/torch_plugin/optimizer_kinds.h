// All optimizers of LibTorch that have options and state, in pairs that differ
// in all options.
#pragma once

#include <torch/torch.h>

#include <functional>
#include <memory>
#include <string>
#include <utility>
#include <vector>

namespace hvdlite {

// Makes an optimizer with several parameter groups. Each has half the learning
// rate of the previous one.
using MakeOfGroups = std::function<std::unique_ptr<torch::optim::Optimizer>(
    std::vector<std::vector<torch::Tensor>>)>;

template <typename Kind, typename Options>
MakeOfGroups OfGroups(const Options& options) {
  return [options](const std::vector<std::vector<torch::Tensor>>& parameters) {
    std::vector<torch::optim::OptimizerParamGroup> groups;
    auto of_group = options;
    for (const std::vector<torch::Tensor>& part : parameters) {
      groups.emplace_back(part, std::make_unique<Options>(of_group));
      of_group.set_lr(of_group.get_lr() / 2);
    }
    return std::make_unique<Kind>(groups, options);
  };
}

// For optimizers that accept only one group.
inline MakeOfGroups Lbfgs(const torch::optim::LBFGSOptions& options) {
  return [options](const std::vector<std::vector<torch::Tensor>>& parameters) {
    std::vector<torch::Tensor> all;
    for (const std::vector<torch::Tensor>& part : parameters) {
      all.insert(all.end(), part.begin(), part.end());
    }
    return std::make_unique<torch::optim::LBFGS>(all, options);
  };
}

struct OptimizerKind {
  std::string name;
  MakeOfGroups one;
  MakeOfGroups other;
  // Tolerance for training on several ranks. Iterations amplify differences in
  // the last bits that come from the order of additions.
  double tolerance = 1e-8;
};

inline std::vector<OptimizerKind> OptimizerKinds() {
  using namespace torch::optim;  // NOLINT: its classes only
  return {
      {"Sgd", OfGroups<SGD>(SGDOptions(0.1)), OfGroups<SGD>(SGDOptions(0.7))},
      {"Momentum",
       OfGroups<SGD>(SGDOptions(0.1).momentum(0.9).weight_decay(0.01)),
       OfGroups<SGD>(SGDOptions(0.7))},
      {"Nesterov",
       OfGroups<SGD>(
           SGDOptions(0.1).momentum(0.9).nesterov(true).weight_decay(0.01)),
       OfGroups<SGD>(SGDOptions(0.7))},
      {"Adam", OfGroups<Adam>(AdamOptions(0.01)),
       OfGroups<Adam>(AdamOptions(0.7))},
      {"Amsgrad",
       OfGroups<Adam>(AdamOptions(0.01)
                          .amsgrad(true)
                          .betas({0.8, 0.99})
                          .eps(1e-6)
                          .weight_decay(0.1)),
       OfGroups<Adam>(AdamOptions(0.7))},
      {"AdamW", OfGroups<AdamW>(AdamWOptions(0.01).weight_decay(0.1)),
       OfGroups<AdamW>(AdamWOptions(0.7))},
      {"RMSprop", OfGroups<RMSprop>(RMSpropOptions(0.01)),
       OfGroups<RMSprop>(RMSpropOptions(0.7))},
      {"CenteredRMSprop",
       OfGroups<RMSprop>(
           RMSpropOptions(0.01).centered(true).momentum(0.9).alpha(0.8)),
       OfGroups<RMSprop>(RMSpropOptions(0.7)), 1e-6},
      {"Adagrad", OfGroups<Adagrad>(AdagradOptions(0.01).lr_decay(0.1)),
       OfGroups<Adagrad>(AdagradOptions(0.7))},
      {"Lbfgs", Lbfgs(LBFGSOptions(0.1).max_iter(3).history_size(5)),
       Lbfgs(LBFGSOptions(0.7)), 1e-6},
      {"LbfgsWithLineSearch",
       Lbfgs(LBFGSOptions(1).max_iter(3).tolerance_grad(1e-9).line_search_fn(
           "strong_wolfe")),
       Lbfgs(LBFGSOptions(0.7)), 1e-6},
  };
}

}  // namespace hvdlite
