// ResNet for image classification.
#pragma once

#include <c10/core/MemoryFormat.h>
#include <torch/nn/module.h>
#include <torch/nn/modules/activation.h>
#include <torch/nn/modules/batchnorm.h>
#include <torch/nn/modules/container/sequential.h>
#include <torch/nn/modules/conv.h>
#include <torch/nn/modules/linear.h>
#include <torch/nn/modules/pooling.h>

#include <cstdint>
#include <string>
#include <vector>

namespace hvdlite::trainers {

// One residual network: how many blocks of which kind and width.
struct ResNetArchitecture {
  std::string name;
  bool bottleneck = false;      // 1x1, 3x3, 1x1 blocks; otherwise two 3x3
  std::vector<int64_t> blocks;  // per stage
  std::vector<int64_t> widths;  // per stage, channels of the 3x3 convolutions
  bool stride_in_1x1 = false;   // of a bottleneck; otherwise in its 3x3
};

// resnet18, 34, 50, 101 and 152 of He et al., "Deep Residual Learning for Image
// Recognition" (CVPR 2016), table 1, with the stride in the 3x3 convolution
// ("v1.5"); resnet50_v1, which has it in the first 1x1 convolution as
// published; and resnet8, their CIFAR network of section 4.2 with n = 1, small
// enough to train in seconds (78 thousand parameters).
const std::vector<ResNetArchitecture>& ResNetArchitectures();

// The architecture of that name. Throws std::invalid_argument, listing the
// known names, if there is none.
const ResNetArchitecture& FindResNetArchitecture(const std::string& name);

struct ResNetOptions {
  std::string architecture = "resnet50";
  int64_t classes = 1000;
  // A first layer for 32x32 images: 3x3, stride 1, no max-pooling; otherwise
  // 7x7, stride 2, and 3x3 max-pooling with stride 2.
  bool small_image_stem = false;
  // Start each residual branch at zero (the block is the identity at first).
  bool zero_init_residual = false;
};

// Input [N, 3, H, W] float, output [N, classes] logits. Works in either memory
// format, and in oneDNN's blocked layout if the images have it (to_mkldnn(), at
// least in LibTorch 1.13 also for training): parameters, gradients and logits
// are plain then. Parameters have torchvision's names ("layer1.0.conv1.weight")
// and He initialisation, drawn from torch's default generator.
class ResNetImpl : public torch::nn::Module {
 public:
  explicit ResNetImpl(const ResNetOptions& options);
  torch::Tensor forward(torch::Tensor images);

 private:
  torch::nn::Conv2d conv1_{nullptr};
  torch::nn::BatchNorm2d bn1_{nullptr};
  torch::nn::MaxPool2d max_pool_{nullptr};  // null in the small-image stem
  std::vector<torch::nn::Sequential> stages_;
  torch::nn::Linear fc_{nullptr};
};
TORCH_MODULE(ResNet);

// The first layers of an architecture, as a backbone of other networks: the
// stem for large images and, for each of `strides`, a stage that begins with
// it. Images [N, 3, H, W] float to the last stage's feature map. Weights as
// ResNet's.
torch::nn::Sequential MakeResNetTrunk(const std::string& architecture,
                                      const std::vector<int64_t>& strides);

// Lays out all four-dimensional parameters in `format` (Contiguous: NCHW,
// ChannelsLast: NHWC). The parameters stay the same tensors, so optimizers and
// hooks made before remain valid; gradients that exist keep their layout.
void SetMemoryFormat(torch::nn::Module& model, at::MemoryFormat format);

}  // namespace hvdlite::trainers
