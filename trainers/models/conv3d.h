// Convolutional network in three dimensions for video classification.
#pragma once

#include <torch/nn.h>

#include <cstdint>

namespace hvdlite::trainers {

struct Conv3dNetOptions {
  int64_t classes = 101;
  int64_t width = 64;     // channels of the first convolution
  int64_t hidden = 2048;  // width of the two hidden linear layers
  double dropout = 0.5;
};

// The network with which Tran et al., "Learning Spatiotemporal Features with 3D
// Convolutional Networks" (ICCV 2015), section 3.2, chose C3D's kernels: five
// 3x3x3 convolutions with max-pooling after each, and three linear layers.
// Input [N, 3, 16, 112, 112] float (frames, height, width), output [N, classes]
// logits.
class Conv3dNetImpl : public torch::nn::Module {
 public:
  explicit Conv3dNetImpl(const Conv3dNetOptions& options = {});
  torch::Tensor forward(const torch::Tensor& clips);

 private:
  torch::nn::Sequential features_;
  torch::nn::Sequential classifier_;
};
TORCH_MODULE(Conv3dNet);

}  // namespace hvdlite::trainers
