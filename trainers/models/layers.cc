#include "trainers/models/layers.h"

#include <torch/nn/modules/dropout.h>

#include <algorithm>
#include <cmath>
#include <stdexcept>
#include <string>
#include <utility>

#include "base/keyed_random.h"

namespace hvdlite::trainers {
namespace {

namespace nn = torch::nn;

constexpr int kParts = 1 << 16;  // values of a 16-bit random number
constexpr int64_t kNumbersPerDraw = 4;

// The indices of a row in the dimensions before the last. They locate it in its
// sample, independent of padding.
uint64_t PlaceOf(int64_t row, at::IntArrayRef dimensions) {
  uint64_t place = 0;
  for (size_t i = dimensions.size(); i > 0; --i) {
    place = (place << 20) + static_cast<uint64_t>(row % dimensions[i - 1]);
    row /= dimensions[i - 1];
  }
  return place;
}

// Returns uniform numbers in -kParts / 2 .. kParts / 2 - 1 of this shape [N,
// ...]. A number depends only on the key, on the sample of its row of the first
// dimension, and on its position in that row.
torch::Tensor RandomNumbers(at::IntArrayRef shape, uint64_t key,
                            const std::vector<int64_t>& samples) {
  const bool flat = shape.size() < 2;  // a sample is one value
  const int64_t length = flat ? 1 : shape.back();
  const at::IntArrayRef inner =
      flat ? at::IntArrayRef() : shape.slice(1, shape.size() - 2);
  const int64_t rows_per_sample = c10::multiply_integers(inner);
  const int64_t draws = (length + kNumbersPerDraw - 1) / kNumbersPerDraw;
  torch::Tensor numbers =
      torch::empty({shape[0] * rows_per_sample, draws}, torch::kInt64);
  auto* next = numbers.data_ptr<int64_t>();
  for (int64_t i = 0; i < shape[0]; ++i) {
    const auto sample = static_cast<uint64_t>(
        samples.empty() ? i : samples[static_cast<size_t>(i)]);
    for (int64_t row = 0; row < rows_per_sample; ++row) {
      base::KeyedRandom random{key, sample, PlaceOf(row, inner)};
      for (int64_t draw = 0; draw < draws; ++draw) {
        *next++ = static_cast<int64_t>(random.Next());
      }
    }
  }
  return numbers.view(torch::kInt16).narrow(1, 0, length).reshape(shape);
}

// The score of a hidden key: like minus infinity, but finite in float32 and
// bfloat16.
constexpr double kHiddenScore = -1e38;

// Initialisation of Glorot and Bengio (AISTATS 2010) with the fan-out of one
// head.
void InitialiseHeads(nn::Linear& projection, int64_t width) {
  const auto d_model = static_cast<double>(projection->options.in_features());
  nn::init::normal_(projection->weight, 0.0,
                    std::sqrt(2.0 / (d_model + static_cast<double>(width))));
}

MultiHeadAttention MakeAttention(const TransformerLayerOptions& options) {
  return MultiHeadAttention(
      MultiHeadAttentionOptions{.d_model = options.d_model,
                                .heads = options.heads,
                                .d_k = options.d_k,
                                .d_v = options.d_v,
                                .dropout = options.attention_dropout});
}

}  // namespace

SampleDropoutImpl::SampleDropoutImpl(double share, Unit unit) : unit_(unit) {
  set_share(share);
}

void SampleDropoutImpl::set_share(double share) {
  if (!(share >= 0 && share < 1)) {
    throw std::invalid_argument(
        "the dropout probability must be at least 0 and "
        "below 1, but is " +
        std::to_string(share));
  }
  dropped_ =
      std::min(static_cast<int>(std::lround(share * kParts)), kParts - 1);
}

void SampleDropoutImpl::set_samples(
    std::shared_ptr<const DropoutSamples> samples, uint64_t layer) {
  samples_ = std::move(samples);
  layer_ = layer;
  calls_ = 0;
}

torch::Tensor SampleDropoutImpl::forward(const torch::Tensor& input) {
  if (!is_training() || dropped_ == 0) return input;
  uint64_t key = 0;
  std::vector<int64_t> samples;
  if (samples_ != nullptr) {
    samples = samples_->samples;
    if (std::ssize(samples) != input.size(0)) {
      throw std::invalid_argument(
          "dropout has " + std::to_string(samples.size()) +
          " samples, but the batch has " + std::to_string(input.size(0)));
    }
    key =
        base::KeyedRandom{samples_->seed, static_cast<uint64_t>(samples_->step),
                          layer_, calls_++}
            .Next();
  } else {
    key = static_cast<uint64_t>(
        torch::empty({1}, torch::kInt64).random_().item<int64_t>());
  }
  const at::IntArrayRef shape =
      unit_ == Unit::kChannel ? input.sizes().slice(0, 2) : input.sizes();
  const double scale = static_cast<double>(kParts) / (kParts - dropped_);
  torch::Tensor kept = RandomNumbers(shape, key, samples)
                           .ge(dropped_ - kParts / 2)
                           .to(input.scalar_type())
                           .mul_(scale);
  while (kept.dim() < input.dim()) kept = kept.unsqueeze(-1);
  return input * kept;
}

void SetDropout(torch::nn::Module& model, double share) {
  for (const auto& module : model.modules()) {
    if (auto* by_sample = module->as<SampleDropoutImpl>()) {
      by_sample->set_share(share);
    } else if (auto* dropout = module->as<torch::nn::DropoutImpl>()) {
      dropout->options.p(share);
    } else if (auto* dropout2d = module->as<torch::nn::Dropout2dImpl>()) {
      dropout2d->options.p(share);
    }
  }
}

void SetDropoutSamples(torch::nn::Module& model, DropoutSamples samples) {
  const auto shared =
      std::make_shared<const DropoutSamples>(std::move(samples));
  uint64_t layer = 0;
  for (const auto& module : model.modules()) {
    if (auto* dropout = module->as<SampleDropoutImpl>()) {
      dropout->set_samples(shared, layer++);
    }
  }
}

torch::Tensor SinusoidTable(int64_t max_length, int64_t width) {
  torch::Tensor table = torch::zeros({max_length + 1, width}, torch::kFloat);
  auto values = table.accessor<float, 2>();
  for (int64_t column = 0; column < width; ++column) {
    const int64_t even = column - column % 2;
    const double wavelength = std::pow(
        10000.0, static_cast<double>(even) / static_cast<double>(width));
    for (int64_t position = 1; position <= max_length; ++position) {
      const double angle = static_cast<double>(position) / wavelength;
      values[position][column] = static_cast<float>(
          column == even ? std::sin(angle) : std::cos(angle));
    }
  }
  return table;
}

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
      dropout_(register_module("dropout", SampleDropout(options.dropout))) {
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

AddNormImpl::AddNormImpl(int64_t d_model, double dropout)
    : dropout_(register_module("dropout", SampleDropout(dropout))),
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
