// Neural collaborative filtering, for recommendations.
#pragma once

#include <torch/nn.h>

#include <cstdint>
#include <vector>

#include "trainers/models/mlp.h"

namespace hvdlite::trainers {

struct NeuralCollaborativeFilteringOptions {
  int64_t users = 6040;  // of MovieLens-1M, as are the items
  int64_t items = 3706;
  int64_t factors = 8;  // of the generalised matrix factorisation
  // Of the perceptron's layers; the first, even, holds a user's embedding and
  // an item's.
  std::vector<int64_t> widths = {64, 32, 16, 8};
};

// NeuMF of He et al., "Neural Collaborative Filtering" (WWW 2017), section 3.4:
// a matrix factorisation and a perceptron with embeddings of their own, joined
// in the last layer.
class NeuralCollaborativeFilteringImpl : public torch::nn::Module {
 public:
  explicit NeuralCollaborativeFilteringImpl(
      const NeuralCollaborativeFilteringOptions& options = {});

  // `users` and `items`, both [N] int64, to logits [N] of their interaction.
  torch::Tensor forward(const torch::Tensor& users, const torch::Tensor& items);

 private:
  torch::nn::Embedding gmf_user_;
  torch::nn::Embedding gmf_item_;
  torch::nn::Embedding mlp_user_;
  torch::nn::Embedding mlp_item_;
  Mlp mlp_;
  torch::nn::Linear output_;
};
TORCH_MODULE(NeuralCollaborativeFiltering);

}  // namespace hvdlite::trainers
