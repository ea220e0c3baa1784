// AlexNet for image classification.
#pragma once

#include <torch/nn.h>

#include <cstdint>

namespace hvdlite::trainers {

struct AlexNetOptions {
  int64_t classes = 1000;
  int64_t hidden = 4096;  // width of the two hidden linear layers
  double dropout = 0.5;
};

// The network in one tower of Krizhevsky, "One weird trick for parallelizing
// convolutional neural networks" (2014), as torchvision has it. Input
// [N, 3, H, W] float, H and W at least 63 (224 in the paper), output
// [N, classes] logits.
class AlexNetImpl : public torch::nn::Module {
 public:
  explicit AlexNetImpl(const AlexNetOptions& options = {});
  torch::Tensor forward(const torch::Tensor& images);

 private:
  torch::nn::Sequential features_;
  torch::nn::Sequential classifier_;
};
TORCH_MODULE(AlexNet);

}  // namespace hvdlite::trainers
