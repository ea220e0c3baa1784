// Recurrent translation with attention.
#pragma once

#include <torch/nn.h>

#include <cstdint>
#include <vector>

namespace hvdlite::trainers {

struct TranslatorOptions {
  int64_t vocabulary = 32'317;  // for both languages of WMT16
  int64_t units = 1024;         // for the embedding and each layer
  int64_t layers = 4;           // in encoder and decoder each; at least 2
  double dropout = 0.2;
};

// Normalised additive attention: Bahdanau et al., "Neural Machine Translation
// by Jointly Learning to Align and Translate" (ICLR 2015), with separate
// parameters for scale and direction of the weights (Salimans and Kingma,
// NeurIPS 2016).
class AdditiveAttentionImpl : public torch::nn::Module {
 public:
  explicit AdditiveAttentionImpl(int64_t units);

  // Attends from `queries` [N, T, units] to `memory` [N, S, units] and returns
  // [N, T, units]. Needs memory for [N, T, S, units].
  torch::Tensor forward(const torch::Tensor& queries,
                        const torch::Tensor& memory);

 private:
  torch::nn::Linear query_;
  torch::nn::Linear key_;
  torch::Tensor weight_;
  torch::Tensor scale_;
  torch::Tensor bias_;
};
TORCH_MODULE(AdditiveAttention);

// The LSTM encoder and decoder of Wu et al., "Google's Neural Machine
// Translation System" (2016), as in MLPerf Training v0.5. The encoder's first
// layer reads in both directions. Residual connections begin at the third
// layer. The decoder's first layer queries the attention; all other layers get
// the result. Encoder and decoder share their embedding.
class TranslatorImpl : public torch::nn::Module {
 public:
  // Throws std::invalid_argument for fewer than two layers.
  explicit TranslatorImpl(const TranslatorOptions& options = {});

  // Maps `source` [N, S] and `target` [N, T] int64 to logits [N, T,
  // vocabulary]; logits at t depend only on the target's tokens up to t.
  torch::Tensor forward(const torch::Tensor& source,
                        const torch::Tensor& target);

 private:
  torch::Tensor Encode(const torch::Tensor& source);

  torch::nn::Embedding embedding_;
  std::vector<torch::nn::LSTM> encoder_;
  std::vector<torch::nn::LSTM> decoder_;
  AdditiveAttention attention_;
  torch::nn::Linear output_;
  torch::nn::Dropout dropout_;
};
TORCH_MODULE(Translator);

}  // namespace hvdlite::trainers
