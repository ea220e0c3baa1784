#include "trainers/models/transformer.h"

#include <string>

#include "trainers/models/layers.h"

namespace hvdlite::trainers {
namespace {

namespace nn = torch::nn;

// Returns 1 at tokens and 0 at padding: maps [B, T] int64 to [B, T, 1] of the
// type of `like`.
torch::Tensor RealPositions(const torch::Tensor& tokens,
                            const torch::Tensor& like) {
  return tokens.ne(kPaddingToken).unsqueeze(-1).to(like.scalar_type());
}

}  // namespace

TokenEmbeddingImpl::TokenEmbeddingImpl(int64_t vocabulary, int64_t d_model,
                                       int64_t max_length)
    : embedding_(register_module(
          "embedding", nn::Embedding(nn::EmbeddingOptions(vocabulary, d_model)
                                         .padding_idx(kPaddingToken)))),
      sinusoids_(
          register_buffer("sinusoids", SinusoidTable(max_length, d_model))) {}

torch::Tensor TokenEmbeddingImpl::forward(const torch::Tensor& tokens,
                                          const torch::Tensor& positions) {
  return embedding_(tokens) + torch::embedding(sinusoids_, positions);
}

EncoderImpl::EncoderImpl(const TransformerOptions& options)
    : linear_(register_module(
          "linear", nn::Linear(options.profile_width, options.layer.d_model))),
      embedding_(register_module(
          "embedding",
          TokenEmbedding(options.source_vocabulary, options.layer.d_model,
                         options.max_length))) {
  for (int64_t i = 0; i < options.layers; ++i) {
    layers_.push_back(register_module("layer" + std::to_string(i),
                                      EncoderLayer(options.layer)));
  }
}

torch::Tensor EncoderImpl::forward(const torch::Tensor& tokens,
                                   const torch::Tensor& positions) {
  torch::Tensor stream = embedding_(tokens, positions);
  const torch::Tensor hidden = PaddingMask(tokens, kPaddingToken);
  const torch::Tensor real = RealPositions(tokens, stream);
  for (EncoderLayer& layer : layers_) stream = layer(stream, hidden, real);
  return stream;
}

DecoderImpl::DecoderImpl(const TransformerOptions& options)
    : embedding_(register_module(
          "embedding",
          TokenEmbedding(options.target_vocabulary, options.layer.d_model,
                         options.max_length))) {
  for (int64_t i = 0; i < options.layers; ++i) {
    layers_.push_back(register_module("layer" + std::to_string(i),
                                      DecoderLayer(options.layer)));
  }
}

torch::Tensor DecoderImpl::forward(const torch::Tensor& tokens,
                                   const torch::Tensor& positions,
                                   const torch::Tensor& source,
                                   const torch::Tensor& memory) {
  torch::Tensor stream = embedding_(tokens, positions);
  const torch::Tensor hidden =
      PaddingMask(tokens, kPaddingToken)
          .logical_or(SubsequentMask(tokens.size(1), tokens.device()));
  const torch::Tensor memory_hidden = PaddingMask(source, kPaddingToken);
  const torch::Tensor real = RealPositions(tokens, stream);
  for (DecoderLayer& layer : layers_) {
    stream = layer(stream, memory, hidden, memory_hidden, real);
  }
  return stream;
}

TransformerImpl::TransformerImpl(const TransformerOptions& options)
    : encoder_(register_module("encoder", Encoder(options))),
      decoder_(register_module("decoder", Decoder(options))),
      projection_(register_module(
          "projection", nn::Linear(nn::LinearOptions(options.layer.d_model,
                                                     options.target_vocabulary)
                                       .bias(false)))) {
  nn::init::xavier_normal_(projection_->weight);
}

torch::Tensor TransformerImpl::forward(const torch::Tensor& source,
                                       const torch::Tensor& source_positions,
                                       const torch::Tensor& target,
                                       const torch::Tensor& target_positions) {
  const torch::Tensor memory = encoder_(source, source_positions);
  return projection_(decoder_(target, target_positions, source, memory));
}

}  // namespace hvdlite::trainers
