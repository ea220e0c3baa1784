// Transformer language model over bytes.
#pragma once

#include <torch/nn.h>

#include <cstdint>
#include <vector>

#include "trainers/models/layers.h"

namespace hvdlite::trainers {

struct LanguageModelOptions {
  int64_t vocabulary = 256;
  int64_t layers = 4;
  int64_t d_model = 256;
  int64_t heads = 4;       // must divide d_model
  int64_t d_inner = 1024;  // inner width of the feed-forward network
  int64_t context = 256;   // maximum length of a sequence
  double dropout = 0.1;
};

// One pre-norm layer: self-attention, then two linear layers with GELU. Each
// part has its own LayerNorm before it and a residual connection around it.
class LanguageModelLayerImpl : public torch::nn::Module {
 public:
  explicit LanguageModelLayerImpl(const LanguageModelOptions& options);
  torch::Tensor forward(const torch::Tensor& input,
                        const torch::Tensor& hidden);

 private:
  torch::nn::LayerNorm attention_norm_;
  MultiHeadAttention attention_;
  torch::nn::LayerNorm feed_forward_norm_;
  torch::nn::Sequential feed_forward_;
  SampleDropout dropout_;
};
TORCH_MODULE(LanguageModelLayer);

// Decoder-only transformer like GPT-2: Radford et al., "Language Models are
// Unsupervised Multitask Learners" (2019). It has pre-norm layers and learned
// positions; the token embedding is also the output layer's weight. Initial
// weights are normally distributed with deviation 0.02, or 0.02 / sqrt(2 *
// layers) at the end of a residual branch.
class LanguageModelImpl : public torch::nn::Module {
 public:
  // Throws std::invalid_argument if the heads do not divide d_model.
  explicit LanguageModelImpl(const LanguageModelOptions& options = {});

  // Maps `tokens` [B, T] int64, T <= context, to logits [B, T, vocabulary].
  // Logits at t depend only on the tokens up to t and predict the token at t +
  // 1. Throws std::invalid_argument if T exceeds the context.
  torch::Tensor forward(const torch::Tensor& tokens);

 private:
  const int64_t context_;
  torch::nn::Embedding token_embedding_;
  torch::nn::Embedding position_embedding_;
  SampleDropout dropout_;
  std::vector<LanguageModelLayer> layers_;
  torch::nn::LayerNorm norm_;
};
TORCH_MODULE(LanguageModel);

}  // namespace hvdlite::trainers
