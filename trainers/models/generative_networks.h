// Networks that generate images.
#pragma once

#include <torch/nn.h>

#include <cstdint>

namespace hvdlite::trainers {

// Sizes of the two networks of a deep convolutional generative adversarial
// network for 64x64 images. The defaults are those of Radford et al.,
// "Unsupervised Representation Learning with Deep Convolutional Generative
// Adversarial Networks" (ICLR 2016), as in PyTorch's example "dcgan". Initial
// weights are normally distributed with deviation 0.02.
struct DcganOptions {
  int64_t latent = 100;  // width of the noise
  int64_t width = 64;    // channels next to the image
  int64_t image_channels = 3;
};

// Maps noise [N, latent] float to images [N, image_channels, 64, 64] in (-1,
// 1).
class DcganGeneratorImpl : public torch::nn::Module {
 public:
  explicit DcganGeneratorImpl(const DcganOptions& options = {});
  torch::Tensor forward(const torch::Tensor& noise);

 private:
  torch::nn::Sequential layers_;
};
TORCH_MODULE(DcganGenerator);

// Maps images [N, image_channels, 64, 64] float to logits [N] that they are
// real.
class DcganDiscriminatorImpl : public torch::nn::Module {
 public:
  explicit DcganDiscriminatorImpl(const DcganOptions& options = {});
  torch::Tensor forward(const torch::Tensor& images);

 private:
  torch::nn::Sequential layers_;
};
TORCH_MODULE(DcganDiscriminator);

// Sizes of a variational autoencoder.
struct VaeOptions {
  int64_t pixels = 784;
  int64_t hidden = 400;
  int64_t latent = 20;
};

// The autoencoder's result for [N, pixels].
struct VaeOutput {
  torch::Tensor logits;        // [N, pixels], that the pixels are white
  torch::Tensor mean;          // [N, latent], of the code
  torch::Tensor log_variance;  // [N, latent]
};

// The autoencoder of Kingma and Welling, "Auto-Encoding Variational Bayes"
// (ICLR 2014), with the sizes of PyTorch's example "vae".
class VaeImpl : public torch::nn::Module {
 public:
  explicit VaeImpl(const VaeOptions& options = {});

  // `images` is [N, ...] float in [0, 1], with `pixels` values per image.
  // Training draws the code; evaluation uses its mean.
  VaeOutput forward(const torch::Tensor& images);

 private:
  torch::nn::Linear encoder_;
  torch::nn::Linear mean_;
  torch::nn::Linear log_variance_;
  torch::nn::Linear decoder_;
  torch::nn::Linear output_;
};
TORCH_MODULE(Vae);

// Returns the negative evidence lower bound of `images` in nats, summed over
// the batch: the cross-entropy of the pixels plus the divergence of the code
// from the standard normal distribution (the paper's appendix B).
torch::Tensor VaeLoss(const VaeOutput& output, const torch::Tensor& images);

}  // namespace hvdlite::trainers
