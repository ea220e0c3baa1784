// Networks that make images of images: larger ones, and ones in another style.
#pragma once

#include <torch/nn.h>

#include <cstdint>
#include <vector>

namespace hvdlite::trainers {

struct SuperResolutionOptions {
  int64_t factor = 2;  // of the sides
};

// Shi et al., "Real-Time Single Image and Video Super-Resolution Using an
// Efficient Sub-Pixel Convolutional Neural Network" (CVPR 2016), with the four
// convolutions of PyTorch's example "super_resolution".
class SuperResolutionImpl : public torch::nn::Module {
 public:
  explicit SuperResolutionImpl(const SuperResolutionOptions& options = {});

  // Luminance [N, 1, H, W] to [N, 1, factor * H, factor * W].
  torch::Tensor forward(const torch::Tensor& images);

 private:
  torch::nn::Sequential layers_;
};
TORCH_MODULE(SuperResolution);

// The image transformation network of Johnson et al., "Perceptual Losses for
// Real-Time Style Transfer and Super-Resolution" (ECCV 2016), as PyTorch's
// example "fast_neural_style" has it: instance normalisation, and enlarging by
// repeating pixels before a convolution.
class StyleTransferImpl : public torch::nn::Module {
 public:
  StyleTransferImpl();

  // Images [N, 3, H, W] float, H and W multiples of 4, to such images.
  torch::Tensor forward(const torch::Tensor& images);

 private:
  torch::nn::Sequential layers_;
};
TORCH_MODULE(StyleTransfer);

// What VGG-16 makes of an image before its first four poolings (relu1_2,
// relu2_2, relu3_3 and relu4_3), by which images are compared. Its weights do
// not learn.
class VggFeaturesImpl : public torch::nn::Module {
 public:
  VggFeaturesImpl();

  // Images [N, 3, H, W] float, H and W at least 8, to four feature maps.
  std::vector<torch::Tensor> forward(const torch::Tensor& images);

 private:
  std::vector<torch::nn::Sequential> stages_;
};
TORCH_MODULE(VggFeatures);

// The style that feature maps show, [N, C, C] each: the products of all pairs
// of channels over the size of a map (Johnson et al., section 3.2).
std::vector<torch::Tensor> GramMatrices(
    const std::vector<torch::Tensor>& features);

// How far images are from the content of others and from a style: the mean
// squared differences of relu2_2, times 1e5, and of the Gram matrices, times
// 1e10, the example's weights. `style` are matrices [1, C, C].
torch::Tensor PerceptualLoss(const std::vector<torch::Tensor>& features,
                             const std::vector<torch::Tensor>& content,
                             const std::vector<torch::Tensor>& style);

}  // namespace hvdlite::trainers
