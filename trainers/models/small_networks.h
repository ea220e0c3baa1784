// Small networks for vectors and sequences, which train_synthetic alone trains.
#pragma once

#include <torch/nn.h>

#include <cstdint>
#include <vector>

namespace hvdlite::trainers {

// Multi-layer perceptron.
struct MlpOptions {
  std::vector<int64_t> widths = {784, 512, 512, 10};  // input to output
};

// Linear layers with ReLU between them. Input [N, ...] float with
// widths.front() values per sample, output [N, widths.back()] logits.
class MlpImpl : public torch::nn::Module {
 public:
  // Throws std::invalid_argument if there are fewer than two widths.
  explicit MlpImpl(const MlpOptions& options = {});
  torch::Tensor forward(const torch::Tensor& input);

 private:
  torch::nn::Sequential layers_;
};
TORCH_MODULE(Mlp);

// Neural collaborative filtering, for recommendations.
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

// LSTM that classifies sequences.
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

// Recurrent language model over words.
struct WordLanguageModelOptions {
  int64_t vocabulary = 10'000;  // of the Penn Treebank
  int64_t units = 200;          // of the embedding and of each layer
  int64_t layers = 2;
  double dropout = 0.2;
  bool gru = false;  // gated recurrent units (Cho et al., 2014), not LSTM
};

// PyTorch's example "word_language_model", after Zaremba et al., "Recurrent
// Neural Network Regularization" (2014): dropout on the way up, not along time.
// The state is zero before each sequence.
class WordLanguageModelImpl : public torch::nn::Module {
 public:
  explicit WordLanguageModelImpl(const WordLanguageModelOptions& options = {});

  // `tokens` [N, T] int64 to logits [N, T, vocabulary], which predict the next
  // token.
  torch::Tensor forward(const torch::Tensor& tokens);

 private:
  torch::nn::Embedding embedding_;
  torch::nn::LSTM lstm_{nullptr};  // one of the two
  torch::nn::GRU gru_{nullptr};
  torch::nn::Linear decoder_;
  torch::nn::Dropout dropout_;
};
TORCH_MODULE(WordLanguageModel);

struct WavePredictorOptions {
  int64_t hidden = 51;
};

// Two LSTM cells, one above the other, and a linear layer, which predict a
// wave: PyTorch's example "time_sequence_prediction". The state is zero before
// each wave.
class WavePredictorImpl : public torch::nn::Module {
 public:
  explicit WavePredictorImpl(const WavePredictorOptions& options = {});

  // `waves` [N, T] to [N, T]: what is at t predicts the value at t + 1 from
  // those up to t.
  torch::Tensor forward(const torch::Tensor& waves);

 private:
  torch::nn::LSTMCell lower_;
  torch::nn::LSTMCell upper_;
  torch::nn::Linear output_;
};
TORCH_MODULE(WavePredictor);

}  // namespace hvdlite::trainers
