// Variational autoencoder.
#pragma once

#include <torch/nn.h>

#include <cstdint>

namespace hvdlite::trainers {

struct VaeOptions {
  int64_t pixels = 784;
  int64_t hidden = 400;
  int64_t latent = 20;
};

// What the autoencoder makes of [N, pixels].
struct VaeOutput {
  torch::Tensor logits;        // [N, pixels], of the pixels being white
  torch::Tensor mean;          // [N, latent], of the code
  torch::Tensor log_variance;  // [N, latent]
};

// Kingma and Welling, "Auto-Encoding Variational Bayes" (ICLR 2014), with the
// sizes of PyTorch's example "vae".
class VaeImpl : public torch::nn::Module {
 public:
  explicit VaeImpl(const VaeOptions& options = {});

  // `images` [N, ...] float in [0, 1], with `pixels` values per image. Draws
  // the code in training; takes its mean in evaluation.
  VaeOutput forward(const torch::Tensor& images);

 private:
  torch::nn::Linear encoder_;
  torch::nn::Linear mean_;
  torch::nn::Linear log_variance_;
  torch::nn::Linear decoder_;
  torch::nn::Linear output_;
};
TORCH_MODULE(Vae);

// The negative evidence lower bound of `images`, in nats, summed over the
// batch: the cross-entropy of the pixels and the divergence of the code from
// the standard normal distribution (the paper's appendix B).
torch::Tensor VaeLoss(const VaeOutput& output, const torch::Tensor& images);

}  // namespace hvdlite::trainers
