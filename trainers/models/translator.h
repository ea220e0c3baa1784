// Recurrent translation with attention.
#pragma once

#include <torch/nn.h>

#include <cstdint>
#include <vector>

namespace hvdlite::trainers {

struct TranslatorOptions {
  int64_t vocabulary = 32'317;  // of both languages together, in WMT16
  int64_t units = 1024;         // of the embedding and of each layer
  int64_t layers = 4;           // of the encoder and of the decoder; from 2 on
  double dropout = 0.2;
};

// Normalised additive attention: Bahdanau et al., "Neural Machine Translation
// by Jointly Learning to Align and Translate" (ICLR 2015), with the weights'
// scale learned apart from their direction (Salimans and Kingma, NeurIPS 2016).
class AdditiveAttentionImpl : public torch::nn::Module {
 public:
  explicit AdditiveAttentionImpl(int64_t units);

  // What `queries` [N, T, units] find in `memory` [N, S, units]:
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
// Translation System" (2016), as MLPerf Training v0.5 has it: the encoder's
// first layer reads in both directions, residual connections begin at the third
// layer, and all layers of the decoder but the first see what attention found
// for the first one's outputs. Encoder and decoder share their embedding.
class TranslatorImpl : public torch::nn::Module {
 public:
  // Throws std::invalid_argument for fewer than two layers.
  explicit TranslatorImpl(const TranslatorOptions& options = {});

  // `source` [N, S] and `target` [N, T] int64 to logits [N, T, vocabulary],
  // each of which depends on the target's tokens up to its own.
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
