// Small networks for vectors and sequences, used only by train_synthetic.
#pragma once

#include <torch/nn.h>

#include <cstdint>
#include <vector>

namespace hvdlite::trainers {

// Sizes of a multi-layer perceptron.
struct MlpOptions {
  std::vector<int64_t> widths = {784, 512, 512, 10};  // input to output
};

// Linear layers with ReLU between them. Maps [N, ...] float with widths.front()
// values per sample to [N, widths.back()] logits.
class MlpImpl : public torch::nn::Module {
 public:
  // Throws std::invalid_argument if there are fewer than two widths.
  explicit MlpImpl(const MlpOptions& options = {});
  torch::Tensor forward(const torch::Tensor& input);

 private:
  torch::nn::Sequential layers_;
};
TORCH_MODULE(Mlp);

// Sizes of neural collaborative filtering, for recommendations.
struct NeuralCollaborativeFilteringOptions {
  int64_t users = 6040;  // MovieLens-1M, like the items
  int64_t items = 3706;
  int64_t factors = 8;  // for the generalised matrix factorisation
  // Widths of the perceptron's layers. The first must be even; it holds the
  // embeddings of a user and of an item.
  std::vector<int64_t> widths = {64, 32, 16, 8};
};

// NeuMF of He et al., "Neural Collaborative Filtering" (WWW 2017), section 3.4:
// a matrix factorisation and a perceptron with separate embeddings, joined in
// the last layer.
class NeuralCollaborativeFilteringImpl : public torch::nn::Module {
 public:
  explicit NeuralCollaborativeFilteringImpl(
      const NeuralCollaborativeFilteringOptions& options = {});

  // Maps `users` and `items`, both [N] int64, to logits [N] of an interaction.
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

// Sizes of an LSTM that classifies sequences.
struct LstmClassifierOptions {
  int64_t features = 28;  // per time step: a row of a handwritten digit
  int64_t hidden = 128;
  int64_t layers = 2;
  int64_t classes = 10;
};

// LSTM (Hochreiter and Schmidhuber, "Long Short-Term Memory", Neural
// Computation 1997) with a linear layer on its last output. Maps [N, T,
// features] float to [N, classes] logits.
class LstmClassifierImpl : public torch::nn::Module {
 public:
  explicit LstmClassifierImpl(const LstmClassifierOptions& options = {});
  torch::Tensor forward(const torch::Tensor& sequences);

 private:
  torch::nn::LSTM lstm_;
  torch::nn::Linear fc_;
};
TORCH_MODULE(LstmClassifier);

// Sizes of a recurrent language model over words.
struct WordLanguageModelOptions {
  int64_t vocabulary = 10'000;  // the Penn Treebank's
  int64_t units = 200;          // for the embedding and each layer
  int64_t layers = 2;
  double dropout = 0.2;
  bool gru = false;  // gated recurrent units (Cho et al., 2014) instead of LSTM
};

// PyTorch's example "word_language_model", after Zaremba et al., "Recurrent
// Neural Network Regularization" (2014): dropout between layers, not between
// time steps. The state is zero before each sequence.
class WordLanguageModelImpl : public torch::nn::Module {
 public:
  explicit WordLanguageModelImpl(const WordLanguageModelOptions& options = {});

  // Maps `tokens` [N, T] int64 to logits [N, T, vocabulary], which predict the
  // next token.
  torch::Tensor forward(const torch::Tensor& tokens);

 private:
  torch::nn::Embedding embedding_;
  torch::nn::LSTM lstm_{nullptr};  // only one of both is set
  torch::nn::GRU gru_{nullptr};
  torch::nn::Linear decoder_;
  torch::nn::Dropout dropout_;
};
TORCH_MODULE(WordLanguageModel);

struct WavePredictorOptions {
  int64_t hidden = 51;
};

// Two stacked LSTM cells and a linear layer that predict a wave: PyTorch's
// example "time_sequence_prediction". The state is zero before each wave.
class WavePredictorImpl : public torch::nn::Module {
 public:
  explicit WavePredictorImpl(const WavePredictorOptions& options = {});

  // Maps `waves` [N, T] to [N, T]: the output at t predicts the value at t + 1
  // from the values up to t.
  torch::Tensor forward(const torch::Tensor& waves);

 private:
  torch::nn::LSTMCell lower_;
  torch::nn::LSTMCell upper_;
  torch::nn::Linear output_;
};
TORCH_MODULE(WavePredictor);

}  // namespace hvdlite::trainers
