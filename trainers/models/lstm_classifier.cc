#include "trainers/models/lstm_classifier.h"

#include <tuple>

namespace hvdlite::trainers {

namespace nn = torch::nn;

LstmClassifierImpl::LstmClassifierImpl(const LstmClassifierOptions& options)
    : lstm_(register_module(
          "lstm", nn::LSTM(nn::LSTMOptions(options.features, options.hidden)
                               .num_layers(options.layers)
                               .batch_first(true)))),
      fc_(register_module("fc", nn::Linear(options.hidden, options.classes))) {}

torch::Tensor LstmClassifierImpl::forward(const torch::Tensor& sequences) {
  const torch::Tensor outputs = std::get<0>(lstm_(sequences));
  return fc_(outputs.select(/*dim=*/1, /*index=*/-1));
}

}  // namespace hvdlite::trainers
