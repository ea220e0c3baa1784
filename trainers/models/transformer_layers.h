// Layers of the transformer.
#pragma once

#include <torch/nn.h>

#include <cstdint>

#include "trainers/models/attention.h"
#include "trainers/models/dropout.h"

namespace hvdlite::trainers {

struct TransformerLayerOptions {
  int64_t d_model = 256;
  int64_t d_inner = 512;  // width inside the feed-forward network
  int64_t heads = 8;
  int64_t d_k = 64;
  int64_t d_v = 64;
  double dropout = 0.5;            // of each sublayer's output
  double attention_dropout = 0.1;  // of the attention weights
};

// Joins a sublayer to the stream around it: LayerNorm(input + Dropout(branch)),
// the post-norm of Vaswani et al. (2017), section 3.1.
class AddNormImpl : public torch::nn::Module {
 public:
  AddNormImpl(int64_t d_model, double dropout);
  torch::Tensor forward(const torch::Tensor& input,
                        const torch::Tensor& branch);

 private:
  PackedDropout dropout_;
  torch::nn::LayerNorm norm_;
};
TORCH_MODULE(AddNorm);

// The same two-layer network with ReLU at every position: Vaswani et al.
// (2017), section 3.3, as two convolutions of kernel size 1.
// [B, T, d_model] to [B, T, d_model].
class FeedForwardImpl : public torch::nn::Module {
 public:
  FeedForwardImpl(int64_t d_model, int64_t d_inner);
  torch::Tensor forward(const torch::Tensor& input);

 private:
  torch::nn::Conv1d expand_;
  torch::nn::Conv1d contract_;
};
TORCH_MODULE(FeedForward);

// Self-attention, then the feed-forward network.
class EncoderLayerImpl : public torch::nn::Module {
 public:
  explicit EncoderLayerImpl(const TransformerLayerOptions& options);

  // `input` is [B, S, d_model]. `hidden` masks the attention. `real`
  // [B, S, 1] is 1 at tokens and 0 at padding, where the output becomes 0.
  torch::Tensor forward(const torch::Tensor& input, const torch::Tensor& hidden,
                        const torch::Tensor& real);

 private:
  MultiHeadAttention attention_;
  AddNorm attention_norm_;
  FeedForward feed_forward_;
  AddNorm feed_forward_norm_;
};
TORCH_MODULE(EncoderLayer);

// Self-attention, attention to the encoder's output, then the feed-forward
// network.
class DecoderLayerImpl : public torch::nn::Module {
 public:
  explicit DecoderLayerImpl(const TransformerLayerOptions& options);

  // `input` is [B, T, d_model], `memory` the encoder's output [B, S, d_model];
  // `hidden` masks the self-attention, `memory_hidden` the attention to the
  // memory. `real` [B, T, 1] is 1 at tokens and 0 at padding, where the output
  // becomes 0.
  torch::Tensor forward(const torch::Tensor& input, const torch::Tensor& memory,
                        const torch::Tensor& hidden,
                        const torch::Tensor& memory_hidden,
                        const torch::Tensor& real);

 private:
  MultiHeadAttention self_attention_;
  AddNorm self_attention_norm_;
  MultiHeadAttention memory_attention_;
  AddNorm memory_attention_norm_;
  FeedForward feed_forward_;
  AddNorm feed_forward_norm_;
};
TORCH_MODULE(DecoderLayer);

}  // namespace hvdlite::trainers
