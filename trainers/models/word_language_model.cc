#include "trainers/models/word_language_model.h"

#include <tuple>

namespace hvdlite::trainers {

namespace nn = torch::nn;

WordLanguageModelImpl::WordLanguageModelImpl(
    const WordLanguageModelOptions& options)
    : embedding_(register_module(
          "embedding", nn::Embedding(options.vocabulary, options.units))),
      lstm_(register_module(
          "lstm", nn::LSTM(nn::LSTMOptions(options.units, options.units)
                               .num_layers(options.layers)
                               .dropout(options.dropout)
                               .batch_first(true)))),
      decoder_(register_module("decoder",
                               nn::Linear(options.units, options.vocabulary))),
      dropout_(register_module("dropout", nn::Dropout(options.dropout))) {
  nn::init::uniform_(embedding_->weight, -0.1, 0.1);
  nn::init::uniform_(decoder_->weight, -0.1, 0.1);
  nn::init::zeros_(decoder_->bias);
}

torch::Tensor WordLanguageModelImpl::forward(const torch::Tensor& tokens) {
  const torch::Tensor outputs =
      std::get<0>(lstm_(dropout_(embedding_(tokens))));
  return decoder_(dropout_(outputs));
}

}  // namespace hvdlite::trainers
