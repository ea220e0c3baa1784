#include "trainers/models/mlp.h"

#include <stdexcept>

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

}  // namespace hvdlite::trainers
