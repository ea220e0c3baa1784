#include "trainers/models/translator.h"

#include <cmath>
#include <stdexcept>
#include <string>
#include <tuple>

namespace hvdlite::trainers {
namespace {

namespace nn = torch::nn;

nn::LSTM MakeLayer(int64_t inputs, int64_t units, bool both_ways = false) {
  return nn::LSTM(nn::LSTMOptions(inputs, units)
                      .batch_first(true)
                      .bidirectional(both_ways));
}

torch::Tensor OutputsOf(nn::LSTM& layer, const torch::Tensor& inputs) {
  return std::get<0>(layer(inputs));
}

}  // namespace

AdditiveAttentionImpl::AdditiveAttentionImpl(int64_t units)
    : query_(register_module(
          "query", nn::Linear(nn::LinearOptions(units, units).bias(false)))),
      key_(register_module(
          "key", nn::Linear(nn::LinearOptions(units, units).bias(false)))) {
  const double limit = 1 / std::sqrt(static_cast<double>(units));
  weight_ = register_parameter("weight",
                               torch::empty({units}).uniform_(-limit, limit));
  scale_ = register_parameter("scale", torch::full({1}, limit));
  bias_ = register_parameter("bias", torch::zeros({units}));
}

torch::Tensor AdditiveAttentionImpl::forward(const torch::Tensor& queries,
                                             const torch::Tensor& memory) {
  const torch::Tensor sums =
      query_(queries).unsqueeze(2) + key_(memory).unsqueeze(1) + bias_;
  const torch::Tensor weight = weight_ / weight_.norm() * scale_;
  const torch::Tensor scores = torch::tanh(sums).matmul(weight);
  return scores.softmax(-1).bmm(memory);
}

TranslatorImpl::TranslatorImpl(const TranslatorOptions& options)
    : embedding_(register_module(
          "embedding", nn::Embedding(options.vocabulary, options.units))),
      attention_(
          register_module("attention", AdditiveAttention(options.units))),
      output_(register_module("output",
                              nn::Linear(options.units, options.vocabulary))),
      dropout_(register_module("dropout", nn::Dropout(options.dropout))) {
  if (options.layers < 2) {
    throw std::invalid_argument("a translator needs at least two layers");
  }
  const int64_t units = options.units;
  for (int64_t i = 0; i < options.layers; ++i) {
    const std::string index = std::to_string(i);
    encoder_.push_back(register_module(
        "encoder" + index,
        MakeLayer(i == 1 ? 2 * units : units, units, /*both_ways=*/i == 0)));
    decoder_.push_back(register_module(
        "decoder" + index, MakeLayer(i == 0 ? units : 2 * units, units)));
  }
}

torch::Tensor TranslatorImpl::Encode(const torch::Tensor& source) {
  torch::Tensor stream = embedding_(source);
  for (size_t i = 0; i < encoder_.size(); ++i) {
    const torch::Tensor outputs =
        OutputsOf(encoder_[i], i == 0 ? stream : dropout_(stream));
    stream = i < 2 ? outputs : outputs + stream;
  }
  return stream;
}

torch::Tensor TranslatorImpl::forward(const torch::Tensor& source,
                                      const torch::Tensor& target) {
  const torch::Tensor memory = Encode(source);
  torch::Tensor stream = OutputsOf(decoder_[0], embedding_(target));
  const torch::Tensor found = attention_(stream, memory);
  for (size_t i = 1; i < decoder_.size(); ++i) {
    const torch::Tensor outputs =
        OutputsOf(decoder_[i], torch::cat({dropout_(stream), found}, 2));
    stream = i < 2 ? outputs : outputs + stream;
  }
  return output_(stream);
}

}  // namespace hvdlite::trainers
