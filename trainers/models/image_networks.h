// Networks other than ResNet for the classification of images, handwritten
// digits and video.
#pragma once

#include <torch/nn.h>

#include <cstdint>

#include "trainers/models/layers.h"

namespace hvdlite::trainers {

struct AlexNetOptions {
  int64_t classes = 1000;
  int64_t hidden = 4096;  // width of the two hidden linear layers
  double dropout = 0.5;
};

// The single-tower network of Krizhevsky, "One weird trick for parallelizing
// convolutional neural networks" (2014), as in torchvision. Input [N, 3, H, W]
// float, H and W at least 63 (224 in the paper); output [N, classes] logits.
class AlexNetImpl : public torch::nn::Module {
 public:
  explicit AlexNetImpl(const AlexNetOptions& options = {});
  torch::Tensor forward(const torch::Tensor& images);

 private:
  torch::nn::Sequential features_;
  torch::nn::Sequential classifier_;
};
TORCH_MODULE(AlexNet);

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

struct Conv3dNetOptions {
  int64_t classes = 101;
  int64_t width = 64;     // channels of the first convolution
  int64_t hidden = 2048;  // width of the two hidden linear layers
  double dropout = 0.5;
};

// The network of Tran et al., "Learning Spatiotemporal Features with 3D
// Convolutional Networks" (ICCV 2015), section 3.2, which they used to choose
// C3D's kernels: five 3x3x3 convolutions with max-pooling after each, and three
// linear layers. Input [N, 3, 16, 112, 112] float (frames, height, width),
// output [N, classes] logits.
class Conv3dNetImpl : public torch::nn::Module {
 public:
  explicit Conv3dNetImpl(const Conv3dNetOptions& options = {});
  torch::Tensor forward(const torch::Tensor& clips);

 private:
  torch::nn::Sequential features_;
  torch::nn::Sequential classifier_;
};
TORCH_MODULE(Conv3dNet);

// The network of the first MNIST examples of PyTorch and Horovod. Input [N, 1,
// 28, 28] float, output [N, 10] log probabilities.
class DigitNetImpl : public torch::nn::Module {
 public:
  DigitNetImpl();
  torch::Tensor forward(const torch::Tensor& images);

 private:
  torch::nn::Conv2d conv1_;
  torch::nn::Conv2d conv2_;
  SampleDropout conv2_dropout_;
  torch::nn::Linear fc1_;
  SampleDropout fc1_dropout_;
  torch::nn::Linear fc2_;
};
TORCH_MODULE(DigitNet);

}  // namespace hvdlite::trainers
