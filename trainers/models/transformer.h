// Transformer that predicts the structure of proteins.
#pragma once

#include <torch/nn.h>

#include <cstdint>
#include <vector>

#include "trainers/models/layers.h"

namespace hvdlite::trainers {

// The token that pads sequences to the length of their batch.
inline constexpr int64_t kPaddingToken = 0;

// Sizes of the transformer. The defaults are those of the pssp-transformer
// project: four special tokens and 21 amino acids in the source, four and 8
// structures in the target.
struct TransformerOptions {
  int64_t source_vocabulary = 25;
  int64_t target_vocabulary = 12;
  int64_t max_length = 702;  // 700 residues between two special tokens
  int64_t profile_width = 21;
  int64_t layers = 2;  // in encoder and decoder each
  TransformerLayerOptions layer;
};

// Adds the embeddings of tokens and of their positions: maps [B, T] and [B, T]
// int64 to [B, T, d_model].
class TokenEmbeddingImpl : public torch::nn::Module {
 public:
  TokenEmbeddingImpl(int64_t vocabulary, int64_t d_model, int64_t max_length);
  torch::Tensor forward(const torch::Tensor& tokens,
                        const torch::Tensor& positions);

 private:
  torch::nn::Embedding embedding_;
  torch::Tensor sinusoids_;  // a buffer
};
TORCH_MODULE(TokenEmbedding);

class EncoderImpl : public torch::nn::Module {
 public:
  explicit EncoderImpl(const TransformerOptions& options);
  // Maps [B, S] and [B, S] int64 to [B, S, d_model].
  torch::Tensor forward(const torch::Tensor& tokens,
                        const torch::Tensor& positions);

 private:
  torch::nn::Linear linear_;  // for sequence profiles; unused
  TokenEmbedding embedding_;
  std::vector<EncoderLayer> layers_;
};
TORCH_MODULE(Encoder);

class DecoderImpl : public torch::nn::Module {
 public:
  explicit DecoderImpl(const TransformerOptions& options);
  // Maps [B, T] and [B, T] int64 to [B, T, d_model]. `memory` [B, S, d_model]
  // is the encoder's output for `source` [B, S].
  torch::Tensor forward(const torch::Tensor& tokens,
                        const torch::Tensor& positions,
                        const torch::Tensor& source,
                        const torch::Tensor& memory);

 private:
  TokenEmbedding embedding_;
  std::vector<DecoderLayer> layers_;
};
TORCH_MODULE(Decoder);

// Encoder and decoder of Vaswani et al., "Attention Is All You Need" (NeurIPS
// 2017), with the variations of the pssp-transformer project: embeddings are
// not scaled, there is no dropout before the first layer, no weights are
// shared, and the output of layers is zero at padding. The encoder also has an
// unused layer `linear`, whose parameters never get a gradient.
class TransformerImpl : public torch::nn::Module {
 public:
  explicit TransformerImpl(const TransformerOptions& options = {});

  // `source` [B, S] and `target` [B, T] hold int64 tokens; the other arguments
  // hold their positions: from 1 to max_length, 0 at padding. Returns logits
  // [B, T, target_vocabulary]. Those at t depend only on the target up to t,
  // and are zero at padding. For training, pass the true target without its
  // last token, and compare the logits with the target without its first.
  // Throws c10::Error if a token or position is out of range.
  torch::Tensor forward(const torch::Tensor& source,
                        const torch::Tensor& source_positions,
                        const torch::Tensor& target,
                        const torch::Tensor& target_positions);

 private:
  Encoder encoder_;
  Decoder decoder_;
  torch::nn::Linear projection_;
};
TORCH_MODULE(Transformer);

}  // namespace hvdlite::trainers
