// Layers of the transformers: dropping values out in training, positions,
// multi-head attention and its masks, and what an encoder and a decoder are
// made of.
#pragma once

#include <torch/nn.h>
#include <torch/nn/module.h>
#include <torch/nn/pimpl.h>
#include <torch/types.h>

#include <cstdint>
#include <memory>
#include <vector>

namespace hvdlite::trainers {

// What a batch holds: row i of it is sample `samples[i]` of the data, in this
// step. Without samples (the default) a batch is anything.
struct DropoutSamples {
  uint64_t seed = 0;
  int64_t step = 0;
  std::vector<int64_t> samples = {};
};

// Dropout (Srivastava et al., JMLR 2014), as torch::nn::Dropout, whose choice
// about a value depends on seed, step, layer and sample, and on where in the
// sample the value is, alone: not on the rank that has the sample, on what else
// is in its batch, or on how far that is padded. So N ranks drop what one
// process would. A random number of 64 bits decides about four values, where
// LibTorch draws one for each. The share is rounded to a multiple of 1 / 65536.
class SampleDropoutImpl : public torch::nn::Module {
 public:
  // Of an input [N, C, ...], what is dropped together.
  enum class Unit { kValue, kChannel };

  // Throws std::invalid_argument unless 0 <= share < 1.
  explicit SampleDropoutImpl(double share, Unit unit = Unit::kValue);

  // In training sets this share of the units of `input` [N, ...] to zero, each
  // by chance, and scales the others so that the expectation stays; otherwise
  // changes nothing. Where samples were set, N is as many
  // (std::invalid_argument); else the choice follows LibTorch's default
  // generator.
  torch::Tensor forward(const torch::Tensor& input);

  void set_share(double share);
  // Until the next call. `layer` tells this module from the model's others.
  void set_samples(std::shared_ptr<const DropoutSamples> samples,
                   uint64_t layer);

 private:
  const Unit unit_;
  int dropped_ = 0;  // share, in 65536ths
  std::shared_ptr<const DropoutSamples> samples_;
  uint64_t layer_ = 0;
  uint64_t calls_ = 0;  // since set_samples()
};
TORCH_MODULE(SampleDropout);

// Sets the share of values that every Dropout, Dropout2d and SampleDropout of
// the model sets to zero in training; 0: none.
void SetDropout(torch::nn::Module& model, double share);

// Tells every SampleDropout of the model what the next batch holds.
void SetDropoutSamples(torch::nn::Module& model, DropoutSamples samples);

// Sinusoids of Vaswani et al., "Attention Is All You Need" (NeurIPS 2017),
// section 3.5, for positions 0 to `max_length`: [max_length + 1, width] float.
// Row p has sin(p / 10000^(2i / width)) in column 2i and the cosine of the same
// angle in column 2i + 1. Row 0 belongs to padding and is zero.
torch::Tensor SinusoidTable(int64_t max_length, int64_t width);

struct MultiHeadAttentionOptions {
  int64_t d_model = 256;
  int64_t heads = 8;
  int64_t d_k = 64;      // width of a head's queries and keys
  int64_t d_v = 64;      // width of a head's values
  double dropout = 0.1;  // of the attention weights
};

// Scaled dot-product attention in several heads: Vaswani et al., "Attention Is
// All You Need" (NeurIPS 2017), section 3.2. Unlike in
// torch::nn::MultiheadAttention, heads * d_k may differ from d_model. Weights
// start with Glorot's variance, that of the queries, keys and values with the
// fan-out of one head.
class MultiHeadAttentionImpl : public torch::nn::Module {
 public:
  explicit MultiHeadAttentionImpl(const MultiHeadAttentionOptions& options);

  // What `queries` [B, Q, d_model] find in `memory` [B, K, d_model], as
  // [B, Q, d_model]. `hidden` is a bool tensor that broadcasts to
  // [B, heads, Q, K], true where a query must not look. A query from which
  // everything is hidden gets the mean over the memory, not NaN.
  torch::Tensor forward(const torch::Tensor& queries,
                        const torch::Tensor& memory,
                        const torch::Tensor& hidden);

 private:
  // [B, T, heads * width] to [B, heads, T, width].
  torch::Tensor SplitHeads(const torch::Tensor& projected) const;

  const int64_t heads_;
  torch::nn::Linear query_;
  torch::nn::Linear key_;
  torch::nn::Linear value_;
  torch::nn::Linear output_;
  SampleDropout dropout_;
};
TORCH_MODULE(MultiHeadAttention);

// Hides the keys that are padding: [B, 1, 1, K] bool for `tokens` [B, K].
torch::Tensor PaddingMask(const torch::Tensor& tokens, int64_t padding_token);

// Hides from each position those after it: [1, 1, length, length] bool.
torch::Tensor SubsequentMask(int64_t length, const torch::Device& device);

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
  SampleDropout dropout_;
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
