// Small convolutional network for handwritten digits.
#pragma once

#include <torch/nn.h>

namespace hvdlite::trainers {

// The network of PyTorch's first MNIST example, and of Horovod's. Input
// [N, 1, 28, 28] float, output [N, 10] log probabilities.
class DigitNetImpl : public torch::nn::Module {
 public:
  DigitNetImpl();
  torch::Tensor forward(const torch::Tensor& images);

 private:
  torch::nn::Conv2d conv1_;
  torch::nn::Conv2d conv2_;
  torch::nn::Dropout2d conv2_dropout_;
  torch::nn::Linear fc1_;
  torch::nn::Dropout fc1_dropout_;
  torch::nn::Linear fc2_;
};
TORCH_MODULE(DigitNet);

}  // namespace hvdlite::trainers
