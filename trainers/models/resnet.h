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

// A residual network's blocks: their kind, number and widths.
struct ResNetArchitecture {
  std::string name;
  bool bottleneck = false;      // 1x1, 3x3, 1x1 blocks; else two 3x3
  std::vector<int64_t> blocks;  // per stage
  std::vector<int64_t> widths;  // per stage, channels of the 3x3 convolutions
  bool stride_in_1x1 = false;   // of a bottleneck; else in its 3x3
};

// The names are resnet18, 34, 50, 101 and 152 of He et al., "Deep Residual
// Learning for Image Recognition" (CVPR 2016), table 1, with the stride in the
// 3x3 convolution ("v1.5"); resnet50_v1, with the stride in the first 1x1
// convolution as published; and resnet8, their CIFAR network of section 4.2
// with n = 1, which trains in seconds (78 thousand parameters).
const std::vector<ResNetArchitecture>& ResNetArchitectures();

// Returns the architecture of that name. Throws std::invalid_argument, which
// lists the known names, if there is none.
const ResNetArchitecture& FindResNetArchitecture(const std::string& name);

struct ResNetOptions {
  std::string architecture = "resnet50";
  int64_t classes = 1000;
  // A first layer for 32x32 images: 3x3, stride 1, no max-pooling. Otherwise
  // 7x7, stride 2, and 3x3 max-pooling with stride 2.
  bool small_image_stem = false;
  // Initialise the end of each residual branch with zero, so that the block is
  // the identity at first.
  bool zero_init_residual = false;
};

// Maps [N, 3, H, W] float to [N, classes] logits. It works in both memory
// formats. It also works in oneDNN's blocked layout if the images have it
// (to_mkldnn(); LibTorch 1.13 can train with it too); parameters, gradients and
// logits then have the plain layout. Parameters have torchvision's names
// ("layer1.0.conv1.weight") and He initialisation, drawn from torch's default
// generator.
class ResNetImpl : public torch::nn::Module {
 public:
  explicit ResNetImpl(const ResNetOptions& options);
  torch::Tensor forward(torch::Tensor images);

 private:
  torch::nn::Conv2d conv1_{nullptr};
  torch::nn::BatchNorm2d bn1_{nullptr};
  torch::nn::MaxPool2d max_pool_{nullptr};  // null with the small-image stem
  std::vector<torch::nn::Sequential> stages_;
  torch::nn::Linear fc_{nullptr};
};
TORCH_MODULE(ResNet);

// The first layers of an architecture, as the backbone of other networks: the
// stem for large images and one stage for each of `strides`, whose first block
// has that stride. Maps images [N, 3, H, W] float to the last stage's feature
// map. The weights are initialised as in ResNet.
torch::nn::Sequential MakeResNetTrunk(const std::string& architecture,
                                      const std::vector<int64_t>& strides);

// Converts all four-dimensional parameters to `format` (Contiguous: NCHW,
// ChannelsLast: NHWC). The parameters stay the same tensors, so existing
// optimizers and hooks remain valid. Existing gradients keep their layout.
void SetMemoryFormat(torch::nn::Module& model, at::MemoryFormat format);

}  // namespace hvdlite::trainers
