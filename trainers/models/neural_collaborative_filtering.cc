#include "trainers/models/neural_collaborative_filtering.h"

namespace hvdlite::trainers {

namespace nn = torch::nn;

NeuralCollaborativeFilteringImpl::NeuralCollaborativeFilteringImpl(
    const NeuralCollaborativeFilteringOptions& options)
    : gmf_user_(register_module("gmf_user",
                                nn::Embedding(options.users, options.factors))),
      gmf_item_(register_module("gmf_item",
                                nn::Embedding(options.items, options.factors))),
      mlp_user_(register_module(
          "mlp_user",
          nn::Embedding(options.users, options.widths.front() / 2))),
      mlp_item_(register_module(
          "mlp_item",
          nn::Embedding(options.items, options.widths.front() / 2))),
      mlp_(register_module("mlp", Mlp(MlpOptions{.widths = options.widths}))),
      output_(register_module(
          "output", nn::Linear(options.factors + options.widths.back(), 1))) {
  for (nn::Embedding* embedding :
       {&gmf_user_, &gmf_item_, &mlp_user_, &mlp_item_}) {
    nn::init::normal_((*embedding)->weight, 0.0, 0.01);
  }
}

torch::Tensor NeuralCollaborativeFilteringImpl::forward(
    const torch::Tensor& users, const torch::Tensor& items) {
  const torch::Tensor factorised = gmf_user_(users) * gmf_item_(items);
  const torch::Tensor perceptron =
      torch::relu(mlp_(torch::cat({mlp_user_(users), mlp_item_(items)}, 1)));
  return output_(torch::cat({factorised, perceptron}, 1)).squeeze(1);
}

}  // namespace hvdlite::trainers
