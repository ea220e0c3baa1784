// Networks that map images to images: super-resolution and style transfer.
#pragma once

#include <torch/nn.h>

#include <cstdint>
#include <vector>

namespace hvdlite::trainers {

struct SuperResolutionOptions {
  int64_t factor = 2;  // of each side
};

// Shi et al., "Real-Time Single Image and Video Super-Resolution Using an
// Efficient Sub-Pixel Convolutional Neural Network" (CVPR 2016), with the four
// convolutions of PyTorch's example "super_resolution".
class SuperResolutionImpl : public torch::nn::Module {
 public:
  explicit SuperResolutionImpl(const SuperResolutionOptions& options = {});

  // Maps luminance [N, 1, H, W] to [N, 1, factor * H, factor * W].
  torch::Tensor forward(const torch::Tensor& images);

 private:
  torch::nn::Sequential layers_;
};
TORCH_MODULE(SuperResolution);

// The image transformation network of Johnson et al., "Perceptual Losses for
// Real-Time Style Transfer and Super-Resolution" (ECCV 2016), as in PyTorch's
// example "fast_neural_style": instance normalisation, and upsampling by
// repeated pixels before a convolution.
class StyleTransferImpl : public torch::nn::Module {
 public:
  StyleTransferImpl();

  // Maps images [N, 3, H, W] float, H and W multiples of 4, to such images.
  torch::Tensor forward(const torch::Tensor& images);

 private:
  torch::nn::Sequential layers_;
};
TORCH_MODULE(StyleTransfer);

// The feature maps of VGG-16 before its first four poolings (relu1_2, relu2_2,
// relu3_3 and relu4_3); their differences measure how images differ. The
// weights are constant.
class VggFeaturesImpl : public torch::nn::Module {
 public:
  VggFeaturesImpl();

  // Maps images [N, 3, H, W] float, H and W at least 8, to four feature maps.
  std::vector<torch::Tensor> forward(const torch::Tensor& images);

 private:
  std::vector<torch::nn::Sequential> stages_;
};
TORCH_MODULE(VggFeatures);

// The style of feature maps, one Gram matrix [N, C, C] for each map: the
// products of all pairs of channels, divided by the size of the map (Johnson et
// al., section 3.2).
std::vector<torch::Tensor> GramMatrices(
    const std::vector<torch::Tensor>& features);

// The distance of images from the content of other images and from a style: the
// mean squared differences of relu2_2, times 1e5, plus those of the Gram
// matrices, times 1e10, the example's weights. `style` holds matrices [1, C,
// C].
torch::Tensor PerceptualLoss(const std::vector<torch::Tensor>& features,
                             const std::vector<torch::Tensor>& content,
                             const std::vector<torch::Tensor>& style);

}  // namespace hvdlite::trainers
