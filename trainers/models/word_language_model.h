// LSTM language model over words.
#pragma once

#include <torch/nn.h>

#include <cstdint>

namespace hvdlite::trainers {

struct WordLanguageModelOptions {
  int64_t vocabulary = 10'000;  // of the Penn Treebank
  int64_t units = 200;          // of the embedding and of each layer
  int64_t layers = 2;
  double dropout = 0.2;
};

// The LSTM of PyTorch's example "word_language_model", after Zaremba et al.,
// "Recurrent Neural Network Regularization" (2014): dropout on the way up, not
// along time. The state is zero before each sequence.
class WordLanguageModelImpl : public torch::nn::Module {
 public:
  explicit WordLanguageModelImpl(const WordLanguageModelOptions& options = {});

  // `tokens` [N, T] int64 to logits [N, T, vocabulary], which predict the next
  // token.
  torch::Tensor forward(const torch::Tensor& tokens);

 private:
  torch::nn::Embedding embedding_;
  torch::nn::LSTM lstm_;
  torch::nn::Linear decoder_;
  torch::nn::Dropout dropout_;
};
TORCH_MODULE(WordLanguageModel);

}  // namespace hvdlite::trainers
