// LSTM that classifies sequences.
#pragma once

#include <torch/nn.h>

#include <cstdint>

namespace hvdlite::trainers {

struct LstmClassifierOptions {
  int64_t features = 28;  // of a time step: a row of a handwritten digit
  int64_t hidden = 128;
  int64_t layers = 2;
  int64_t classes = 10;
};

// LSTM (Hochreiter and Schmidhuber, "Long Short-Term Memory", Neural
// Computation 1997) with a linear layer on its last output. Input
// [N, T, features] float, output [N, classes] logits.
class LstmClassifierImpl : public torch::nn::Module {
 public:
  explicit LstmClassifierImpl(const LstmClassifierOptions& options = {});
  torch::Tensor forward(const torch::Tensor& sequences);

 private:
  torch::nn::LSTM lstm_;
  torch::nn::Linear fc_;
};
TORCH_MODULE(LstmClassifier);

}  // namespace hvdlite::trainers
