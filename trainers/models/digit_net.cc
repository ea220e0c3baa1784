#include "trainers/models/digit_net.h"

namespace hvdlite::trainers {

namespace nn = torch::nn;

DigitNetImpl::DigitNetImpl()
    : conv1_(register_module("conv1", nn::Conv2d(1, 10, 5))),
      conv2_(register_module("conv2", nn::Conv2d(10, 20, 5))),
      conv2_dropout_(register_module("conv2_drop", nn::Dropout2d())),
      fc1_(register_module("fc1", nn::Linear(320, 50))),
      fc1_dropout_(register_module("fc1_drop", nn::Dropout())),
      fc2_(register_module("fc2", nn::Linear(50, 10))) {}

torch::Tensor DigitNetImpl::forward(const torch::Tensor& images) {
  torch::Tensor features = torch::relu(torch::max_pool2d(conv1_(images), 2));
  features =
      torch::relu(torch::max_pool2d(conv2_dropout_(conv2_(features)), 2));
  features = fc1_dropout_(torch::relu(fc1_(features.flatten(1))));
  return torch::log_softmax(fc2_(features), 1);
}

}  // namespace hvdlite::trainers
