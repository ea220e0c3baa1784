// Deep convolutional generative adversarial network for 64x64 images.
#pragma once

#include <torch/nn.h>

#include <cstdint>

namespace hvdlite::trainers {

// Sizes of both networks, which are those of Radford et al., "Unsupervised
// Representation Learning with Deep Convolutional Generative Adversarial
// Networks" (ICLR 2016), as in PyTorch's example "dcgan". Weights start
// normally distributed with deviation 0.02.
struct DcganOptions {
  int64_t latent = 100;  // width of the noise
  int64_t width = 64;    // channels next to the image
  int64_t image_channels = 3;
};

// Noise [N, latent] float to images [N, image_channels, 64, 64] in (-1, 1).
class DcganGeneratorImpl : public torch::nn::Module {
 public:
  explicit DcganGeneratorImpl(const DcganOptions& options = {});
  torch::Tensor forward(const torch::Tensor& noise);

 private:
  torch::nn::Sequential layers_;
};
TORCH_MODULE(DcganGenerator);

// Images [N, image_channels, 64, 64] float to logits [N] of their being real.
class DcganDiscriminatorImpl : public torch::nn::Module {
 public:
  explicit DcganDiscriminatorImpl(const DcganOptions& options = {});
  torch::Tensor forward(const torch::Tensor& images);

 private:
  torch::nn::Sequential layers_;
};
TORCH_MODULE(DcganDiscriminator);

}  // namespace hvdlite::trainers
