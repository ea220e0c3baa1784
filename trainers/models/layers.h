// Layers of the transformers: dropout, positions, multi-head attention with its
// masks, and the parts of encoder and decoder.
#pragma once

#include <torch/nn.h>
#include <torch/nn/module.h>
#include <torch/nn/pimpl.h>
#include <torch/types.h>

#include <cstdint>
#include <memory>
#include <vector>

namespace hvdlite::trainers {

// The content of a batch: row i is sample `samples[i]` of the data, in this
// step. Without samples (the default) the content is unknown.
struct DropoutSamples {
  uint64_t seed = 0;
  int64_t step = 0;
  std::vector<int64_t> samples = {};
};

// Dropout (Srivastava et al., JMLR 2014) whose result does not depend on the
// number of ranks. Unlike in torch::nn::Dropout, the choice for a value depends
// only on seed, step, layer, sample and the position in the sample. It does not
// depend on the rank, on the other samples of the batch, or on padding. So N
// ranks drop the same values as one process.
//
// One random number of 64 bits decides about four values; LibTorch draws one
// per value. The probability is rounded to a multiple of 1 / 65536.
class SampleDropoutImpl : public torch::nn::Module {
 public:
  // The unit of dropout in an input [N, C, ...].
  enum class Unit { kValue, kChannel };

  // Throws std::invalid_argument unless 0 <= share < 1.
  explicit SampleDropoutImpl(double share, Unit unit = Unit::kValue);

  // In training, sets this share of the units of `input` [N, ...] to zero at
  // random and scales the others, so that the expectation does not change.
  // Otherwise returns the input unchanged. With samples, N must be their number
  // (else std::invalid_argument); without, LibTorch's default generator
  // decides.
  torch::Tensor forward(const torch::Tensor& input);

  void set_share(double share);
  // Valid until the next call. `layer` distinguishes this module from others.
  void set_samples(std::shared_ptr<const DropoutSamples> samples,
                   uint64_t layer);

 private:
  const Unit unit_;
  int dropped_ = 0;  // probability in 65536ths
  std::shared_ptr<const DropoutSamples> samples_;
  uint64_t layer_ = 0;
  uint64_t calls_ = 0;  // since set_samples()
};
TORCH_MODULE(SampleDropout);

// Sets the dropout probability of every Dropout, Dropout2d and SampleDropout of
// the model; 0: no dropout.
void SetDropout(torch::nn::Module& model, double share);

// Sets the content of the next batch for every SampleDropout of the model.
void SetDropoutSamples(torch::nn::Module& model, DropoutSamples samples);

// Returns the sinusoids of Vaswani et al., "Attention Is All You Need" (NeurIPS
// 2017), section 3.5, for positions 0 to `max_length`: [max_length + 1, width]
// float. Row p has sin(p / 10000^(2i / width)) in column 2i and the cosine of
// the same angle in column 2i + 1. Row 0 is for padding and is zero.
torch::Tensor SinusoidTable(int64_t max_length, int64_t width);

struct MultiHeadAttentionOptions {
  int64_t d_model = 256;
  int64_t heads = 8;
  int64_t d_k = 64;      // width of a head's queries and keys
  int64_t d_v = 64;      // width of a head's values
  double dropout = 0.1;  // of the attention weights
};

// Scaled dot-product attention with several heads: Vaswani et al., "Attention
// Is All You Need" (NeurIPS 2017), section 3.2. Unlike in
// torch::nn::MultiheadAttention, heads * d_k may differ from d_model. Initial
// weights have Glorot's variance; for queries, keys and values with the fan-out
// of one head.
class MultiHeadAttentionImpl : public torch::nn::Module {
 public:
  explicit MultiHeadAttentionImpl(const MultiHeadAttentionOptions& options);

  // Attends from `queries` [B, Q, d_model] to `memory` [B, K, d_model] and
  // returns [B, Q, d_model]. `hidden` is a bool tensor that broadcasts to [B,
  // heads, Q, K]; it is true for keys that a query must ignore. A query that
  // must ignore all keys gets the mean over the memory, not NaN.
  torch::Tensor forward(const torch::Tensor& queries,
                        const torch::Tensor& memory,
                        const torch::Tensor& hidden);

 private:
  // Maps [B, T, heads * width] to [B, heads, T, width].
  torch::Tensor SplitHeads(const torch::Tensor& projected) const;

  const int64_t heads_;
  torch::nn::Linear query_;
  torch::nn::Linear key_;
  torch::nn::Linear value_;
  torch::nn::Linear output_;
  SampleDropout dropout_;
};
TORCH_MODULE(MultiHeadAttention);

// A mask that hides padding keys: [B, 1, 1, K] bool for `tokens` [B, K].
torch::Tensor PaddingMask(const torch::Tensor& tokens, int64_t padding_token);

// A mask that hides later positions: [1, 1, length, length] bool.
torch::Tensor SubsequentMask(int64_t length, const torch::Device& device);

struct TransformerLayerOptions {
  int64_t d_model = 256;
  int64_t d_inner = 512;  // inner width of the feed-forward network
  int64_t heads = 8;
  int64_t d_k = 64;
  int64_t d_v = 64;
  double dropout = 0.5;            // of each sublayer's output
  double attention_dropout = 0.1;  // of the attention weights
};

// Adds a sublayer's result to its input: LayerNorm(input + Dropout(branch)),
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
// (2017), section 3.3, as two convolutions of kernel size 1. Maps [B, T,
// d_model] to [B, T, d_model].
class FeedForwardImpl : public torch::nn::Module {
 public:
  FeedForwardImpl(int64_t d_model, int64_t d_inner);
  torch::Tensor forward(const torch::Tensor& input);

 private:
  torch::nn::Conv1d expand_;
  torch::nn::Conv1d contract_;
};
TORCH_MODULE(FeedForward);

// An encoder layer: self-attention, then the feed-forward network.
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

// A decoder layer: self-attention, attention to the encoder's output, then the
// feed-forward network.
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
