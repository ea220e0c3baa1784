#include "trainers/models/attention.h"

#include <cmath>

namespace hvdlite::trainers {
namespace {

namespace nn = torch::nn;

// What hides a key: as good as minus infinity, finite in float32 and bfloat16.
constexpr double kHiddenScore = -1e38;

// Glorot and Bengio (AISTATS 2010), with the fan-out of one head.
void InitialiseHeads(nn::Linear& projection, int64_t width) {
  const auto d_model = static_cast<double>(projection->options.in_features());
  nn::init::normal_(projection->weight, 0.0,
                    std::sqrt(2.0 / (d_model + static_cast<double>(width))));
}

}  // namespace

MultiHeadAttentionImpl::MultiHeadAttentionImpl(
    const MultiHeadAttentionOptions& options)
    : heads_(options.heads),
      query_(register_module(
          "query", nn::Linear(options.d_model, options.heads * options.d_k))),
      key_(register_module(
          "key", nn::Linear(options.d_model, options.heads * options.d_k))),
      value_(register_module(
          "value", nn::Linear(options.d_model, options.heads * options.d_v))),
      output_(register_module(
          "output", nn::Linear(options.heads * options.d_v, options.d_model))),
      dropout_(register_module("dropout", PackedDropout(options.dropout))) {
  InitialiseHeads(query_, options.d_k);
  InitialiseHeads(key_, options.d_k);
  InitialiseHeads(value_, options.d_v);
  nn::init::xavier_normal_(output_->weight);
}

torch::Tensor MultiHeadAttentionImpl::forward(const torch::Tensor& queries,
                                              const torch::Tensor& memory,
                                              const torch::Tensor& hidden) {
  const torch::Tensor query = SplitHeads(query_(queries));
  const torch::Tensor key = SplitHeads(key_(memory));
  const torch::Tensor value = SplitHeads(value_(memory));
  const double scale = 1.0 / std::sqrt(static_cast<double>(query.size(-1)));
  const torch::Tensor scores = (query.matmul(key.transpose(-2, -1)) * scale)
                                   .masked_fill(hidden, kHiddenScore);
  const torch::Tensor weights = dropout_(scores.softmax(-1));
  return output_(weights.matmul(value).transpose(1, 2).flatten(2));
}

torch::Tensor MultiHeadAttentionImpl::SplitHeads(
    const torch::Tensor& projected) const {
  return projected
      .view({projected.size(0), projected.size(1), heads_,
             projected.size(2) / heads_})
      .transpose(1, 2);
}

torch::Tensor PaddingMask(const torch::Tensor& tokens, int64_t padding_token) {
  return tokens.eq(padding_token).unsqueeze(1).unsqueeze(1);
}

torch::Tensor SubsequentMask(int64_t length, const torch::Device& device) {
  return torch::ones({1, 1, length, length},
                     torch::dtype(torch::kBool).device(device))
      .triu(/*diagonal=*/1);
}

}  // namespace hvdlite::trainers
