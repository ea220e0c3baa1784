#include "trainers/models/transformer_layers.h"

namespace hvdlite::trainers {
namespace {

namespace nn = torch::nn;

MultiHeadAttention MakeAttention(const TransformerLayerOptions& options) {
  return MultiHeadAttention(
      MultiHeadAttentionOptions{.d_model = options.d_model,
                                .heads = options.heads,
                                .d_k = options.d_k,
                                .d_v = options.d_v,
                                .dropout = options.attention_dropout});
}

}  // namespace

AddNormImpl::AddNormImpl(int64_t d_model, double dropout)
    : dropout_(register_module("dropout", PackedDropout(dropout))),
      norm_(register_module("norm",
                            nn::LayerNorm(nn::LayerNormOptions({d_model})))) {}

torch::Tensor AddNormImpl::forward(const torch::Tensor& input,
                                   const torch::Tensor& branch) {
  return norm_(input + dropout_(branch));
}

FeedForwardImpl::FeedForwardImpl(int64_t d_model, int64_t d_inner)
    : expand_(register_module("expand", nn::Conv1d(d_model, d_inner, 1))),
      contract_(register_module("contract", nn::Conv1d(d_inner, d_model, 1))) {}

torch::Tensor FeedForwardImpl::forward(const torch::Tensor& input) {
  const torch::Tensor inner = torch::relu(expand_(input.transpose(1, 2)));
  return contract_(inner).transpose(1, 2);
}

EncoderLayerImpl::EncoderLayerImpl(const TransformerLayerOptions& options)
    : attention_(register_module("attention", MakeAttention(options))),
      attention_norm_(register_module(
          "attention_norm", AddNorm(options.d_model, options.dropout))),
      feed_forward_(register_module(
          "feed_forward", FeedForward(options.d_model, options.d_inner))),
      feed_forward_norm_(register_module(
          "feed_forward_norm", AddNorm(options.d_model, options.dropout))) {}

torch::Tensor EncoderLayerImpl::forward(const torch::Tensor& input,
                                        const torch::Tensor& hidden,
                                        const torch::Tensor& real) {
  const torch::Tensor attended =
      attention_norm_(input, attention_(input, input, hidden)) * real;
  return feed_forward_norm_(attended, feed_forward_(attended)) * real;
}

DecoderLayerImpl::DecoderLayerImpl(const TransformerLayerOptions& options)
    : self_attention_(
          register_module("self_attention", MakeAttention(options))),
      self_attention_norm_(register_module(
          "self_attention_norm", AddNorm(options.d_model, options.dropout))),
      memory_attention_(
          register_module("memory_attention", MakeAttention(options))),
      memory_attention_norm_(register_module(
          "memory_attention_norm", AddNorm(options.d_model, options.dropout))),
      feed_forward_(register_module(
          "feed_forward", FeedForward(options.d_model, options.d_inner))),
      feed_forward_norm_(register_module(
          "feed_forward_norm", AddNorm(options.d_model, options.dropout))) {}

torch::Tensor DecoderLayerImpl::forward(const torch::Tensor& input,
                                        const torch::Tensor& memory,
                                        const torch::Tensor& hidden,
                                        const torch::Tensor& memory_hidden,
                                        const torch::Tensor& real) {
  torch::Tensor stream =
      self_attention_norm_(input, self_attention_(input, input, hidden)) * real;
  stream = memory_attention_norm_(
               stream, memory_attention_(stream, memory, memory_hidden)) *
           real;
  return feed_forward_norm_(stream, feed_forward_(stream)) * real;
}

}  // namespace hvdlite::trainers
