#include "trainers/models/language_model.h"

#include <cmath>
#include <stdexcept>
#include <string>

namespace hvdlite::trainers {
namespace {

namespace nn = torch::nn;

constexpr double kGptDeviation = 0.02;

nn::LayerNorm MakeNorm(int64_t width) {
  return nn::LayerNorm(nn::LayerNormOptions({width}));
}

MultiHeadAttention MakeAttention(const LanguageModelOptions& options) {
  if (options.d_model % options.heads != 0) {
    throw std::invalid_argument(std::to_string(options.heads) +
                                " heads do not divide d_model, " +
                                std::to_string(options.d_model));
  }
  const int64_t width = options.d_model / options.heads;
  return MultiHeadAttention(MultiHeadAttentionOptions{
      .d_model = options.d_model,
      .heads = options.heads,
      .d_k = width,
      .d_v = width,
      .dropout = options.dropout,
  });
}

// True if a parameter of that name belongs to the end of a residual branch.
bool EndsBranch(const std::string& name) {
  return name.ends_with("attention.output.weight") ||
         name.ends_with("feed_forward.2.weight");
}

// Initialises the matrices of linear layers and embeddings, and the biases.
// LayerNorm's weight stays at one.
void InitialiseAsGpt(nn::Module& model, int64_t layers) {
  const torch::NoGradGuard no_grad;
  for (auto& item : model.named_parameters()) {
    torch::Tensor& parameter = item.value();
    if (parameter.dim() == 2) {
      const double scale =
          EndsBranch(item.key())
              ? 1.0 / std::sqrt(2.0 * static_cast<double>(layers))
              : 1.0;
      parameter.normal_(0.0, kGptDeviation * scale);
    } else if (item.key().ends_with("bias")) {
      parameter.zero_();
    }
  }
}

}  // namespace

LanguageModelLayerImpl::LanguageModelLayerImpl(
    const LanguageModelOptions& options)
    : attention_norm_(
          register_module("attention_norm", MakeNorm(options.d_model))),
      attention_(register_module("attention", MakeAttention(options))),
      feed_forward_norm_(
          register_module("feed_forward_norm", MakeNorm(options.d_model))),
      feed_forward_(register_module(
          "feed_forward",
          nn::Sequential(nn::Linear(options.d_model, options.d_inner),
                         nn::GELU(),
                         nn::Linear(options.d_inner, options.d_model)))),
      dropout_(register_module("dropout", SampleDropout(options.dropout))) {}

torch::Tensor LanguageModelLayerImpl::forward(const torch::Tensor& input,
                                              const torch::Tensor& hidden) {
  const torch::Tensor normed = attention_norm_(input);
  const torch::Tensor attended =
      input + dropout_(attention_(normed, normed, hidden));
  return attended +
         dropout_(feed_forward_->forward(feed_forward_norm_(attended)));
}

LanguageModelImpl::LanguageModelImpl(const LanguageModelOptions& options)
    : context_(options.context),
      token_embedding_(
          register_module("token_embedding",
                          nn::Embedding(options.vocabulary, options.d_model))),
      position_embedding_(
          register_module("position_embedding",
                          nn::Embedding(options.context, options.d_model))),
      dropout_(register_module("dropout", SampleDropout(options.dropout))),
      norm_(MakeNorm(options.d_model)) {
  for (int64_t i = 0; i < options.layers; ++i) {
    layers_.push_back(register_module("layer" + std::to_string(i),
                                      LanguageModelLayer(options)));
  }
  register_module("norm", norm_);
  InitialiseAsGpt(*this, options.layers);
}

torch::Tensor LanguageModelImpl::forward(const torch::Tensor& tokens) {
  const int64_t length = tokens.size(1);
  if (length > context_) {
    throw std::invalid_argument("a sequence of " + std::to_string(length) +
                                " tokens exceeds the context of " +
                                std::to_string(context_));
  }
  const torch::Tensor positions = torch::arange(length, tokens.options());
  torch::Tensor stream =
      dropout_(token_embedding_(tokens) + position_embedding_(positions));
  const torch::Tensor hidden = SubsequentMask(length, tokens.device());
  for (LanguageModelLayer& layer : layers_) stream = layer(stream, hidden);
  return torch::linear(norm_(stream), token_embedding_->weight);
}

}  // namespace hvdlite::trainers
