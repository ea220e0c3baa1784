// Transformer that predicts the structure of proteins.
#pragma once

#include <torch/nn.h>

#include <cstdint>
#include <vector>

#include "trainers/models/layers.h"

namespace hvdlite::trainers {

// The token that fills sequences up to the length of their batch.
inline constexpr int64_t kPaddingToken = 0;

// The defaults are those of the pssp-transformer project: four special tokens
// and 21 amino acids in the source, four and 8 structures in the target.
struct TransformerOptions {
  int64_t source_vocabulary = 25;
  int64_t target_vocabulary = 12;
  int64_t max_length = 702;  // 700 residues between two special tokens
  int64_t profile_width = 21;
  int64_t layers = 2;  // of the encoder, and of the decoder
  TransformerLayerOptions layer;
};

// Adds up the embeddings of tokens and of their positions:
// [B, T] and [B, T] int64 to [B, T, d_model].
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
  // [B, S] and [B, S] int64 to [B, S, d_model].
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
  // [B, T] and [B, T] int64 to [B, T, d_model]. `memory` [B, S, d_model] is
  // what the encoder made of `source` [B, S].
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
// shared, what layers put out is zero at padding, and the encoder has a layer
// `linear` that takes no part, so its parameters never get a gradient.
class TransformerImpl : public torch::nn::Module {
 public:
  explicit TransformerImpl(const TransformerOptions& options = {});

  // `source` [B, S] and `target` [B, T] hold int64 tokens, the rest their
  // positions: from 1 to max_length, 0 at padding. Returns logits
  // [B, T, target_vocabulary]; those at t depend on the target up to t only,
  // and are zero at padding. In training, `target` is the true one without its
  // last token, and the logits are compared to it without its first. Throws
  // c10::Error where a token or position is out of range.
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
