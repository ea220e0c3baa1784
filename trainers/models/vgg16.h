// VGG-16 for image classification.
#pragma once

#include <torch/nn.h>

#include <cstdint>

namespace hvdlite::trainers {

struct Vgg16Options {
  int64_t classes = 1000;
  int64_t hidden = 4096;  // width of the two hidden linear layers
  double dropout = 0.5;
};

// Configuration D of Simonyan and Zisserman, "Very Deep Convolutional Networks
// for Large-Scale Image Recognition" (ICLR 2015), table 1, with torchvision's
// initialisation. Input [N, 3, H, W] float, H and W at least 32 (224 in the
// paper), output [N, classes] logits.
class Vgg16Impl : public torch::nn::Module {
 public:
  explicit Vgg16Impl(const Vgg16Options& options = {});
  torch::Tensor forward(const torch::Tensor& images);

 private:
  torch::nn::Sequential features_;
  torch::nn::Sequential classifier_;
};
TORCH_MODULE(Vgg16);

}  // namespace hvdlite::trainers
