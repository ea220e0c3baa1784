#include "trainers/models/small_networks.h"

#include <stdexcept>
#include <tuple>

namespace hvdlite::trainers {

namespace nn = torch::nn;

MlpImpl::MlpImpl(const MlpOptions& options) {
  const std::vector<int64_t>& widths = options.widths;
  if (widths.size() < 2) {
    throw std::invalid_argument(
        "a multi-layer perceptron needs the widths of its input and output");
  }
  for (size_t i = 1; i < widths.size(); ++i) {
    if (i > 1) layers_->push_back(nn::ReLU());
    layers_->push_back(nn::Linear(widths[i - 1], widths[i]));
  }
  register_module("layers", layers_);
}

torch::Tensor MlpImpl::forward(const torch::Tensor& input) {
  return layers_->forward(input.flatten(1));
}

NeuralCollaborativeFilteringImpl::NeuralCollaborativeFilteringImpl(
    const NeuralCollaborativeFilteringOptions& options)
    : gmf_user_(register_module("gmf_user",
                                nn::Embedding(options.users, options.factors))),
      gmf_item_(register_module("gmf_item",
                                nn::Embedding(options.items, options.factors))),
      mlp_user_(register_module(
          "mlp_user",
          nn::Embedding(options.users, options.widths.front() / 2))),
      mlp_item_(register_module(
          "mlp_item",
          nn::Embedding(options.items, options.widths.front() / 2))),
      mlp_(register_module("mlp", Mlp(MlpOptions{.widths = options.widths}))),
      output_(register_module(
          "output", nn::Linear(options.factors + options.widths.back(), 1))) {
  for (nn::Embedding* embedding :
       {&gmf_user_, &gmf_item_, &mlp_user_, &mlp_item_}) {
    nn::init::normal_((*embedding)->weight, 0.0, 0.01);
  }
}

torch::Tensor NeuralCollaborativeFilteringImpl::forward(
    const torch::Tensor& users, const torch::Tensor& items) {
  const torch::Tensor factorised = gmf_user_(users) * gmf_item_(items);
  const torch::Tensor perceptron =
      torch::relu(mlp_(torch::cat({mlp_user_(users), mlp_item_(items)}, 1)));
  return output_(torch::cat({factorised, perceptron}, 1)).squeeze(1);
}

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

WordLanguageModelImpl::WordLanguageModelImpl(
    const WordLanguageModelOptions& options)
    : embedding_(register_module(
          "embedding", nn::Embedding(options.vocabulary, options.units))),
      decoder_(register_module("decoder",
                               nn::Linear(options.units, options.vocabulary))),
      dropout_(register_module("dropout", nn::Dropout(options.dropout))) {
  const auto sized = [&](auto layers) {
    return layers.num_layers(options.layers)
        .dropout(options.dropout)
        .batch_first(true);
  };
  if (options.gru) {
    gru_ = register_module(
        "gru", nn::GRU(sized(nn::GRUOptions(options.units, options.units))));
  } else {
    lstm_ = register_module(
        "lstm", nn::LSTM(sized(nn::LSTMOptions(options.units, options.units))));
  }
  nn::init::uniform_(embedding_->weight, -0.1, 0.1);
  nn::init::uniform_(decoder_->weight, -0.1, 0.1);
  nn::init::zeros_(decoder_->bias);
}

torch::Tensor WordLanguageModelImpl::forward(const torch::Tensor& tokens) {
  const torch::Tensor words = dropout_(embedding_(tokens));
  const torch::Tensor outputs =
      gru_ ? std::get<0>(gru_(words)) : std::get<0>(lstm_(words));
  return decoder_(dropout_(outputs));
}

WavePredictorImpl::WavePredictorImpl(const WavePredictorOptions& options)
    : lower_(register_module("lower", nn::LSTMCell(1, options.hidden))),
      upper_(register_module("upper",
                             nn::LSTMCell(options.hidden, options.hidden))),
      output_(register_module("output", nn::Linear(options.hidden, 1))) {}

torch::Tensor WavePredictorImpl::forward(const torch::Tensor& waves) {
  torch::optional<std::tuple<torch::Tensor, torch::Tensor>> lower;
  torch::optional<std::tuple<torch::Tensor, torch::Tensor>> upper;
  std::vector<torch::Tensor> predicted;
  for (const torch::Tensor& value : waves.split(/*split_size=*/1, /*dim=*/1)) {
    lower = lower_(value, lower);
    upper = upper_(std::get<0>(*lower), upper);
    predicted.push_back(output_(std::get<0>(*upper)));
  }
  return torch::cat(predicted, /*dim=*/1);
}

}  // namespace hvdlite::trainers
