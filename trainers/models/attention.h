// Multi-head attention and its masks.
#pragma once

#include <torch/nn.h>

#include <cstdint>

#include "trainers/models/dropout.h"

namespace hvdlite::trainers {

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
  PackedDropout dropout_;
};
TORCH_MODULE(MultiHeadAttention);

// Hides the keys that are padding: [B, 1, 1, K] bool for `tokens` [B, K].
torch::Tensor PaddingMask(const torch::Tensor& tokens, int64_t padding_token);

// Hides from each position those after it: [1, 1, length, length] bool.
torch::Tensor SubsequentMask(int64_t length, const torch::Device& device);

}  // namespace hvdlite::trainers
