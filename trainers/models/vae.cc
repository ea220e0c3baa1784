#include "trainers/models/vae.h"

namespace hvdlite::trainers {

namespace nn = torch::nn;

VaeImpl::VaeImpl(const VaeOptions& options)
    : encoder_(register_module("encoder",
                               nn::Linear(options.pixels, options.hidden))),
      mean_(
          register_module("mean", nn::Linear(options.hidden, options.latent))),
      log_variance_(register_module(
          "log_variance", nn::Linear(options.hidden, options.latent))),
      decoder_(register_module("decoder",
                               nn::Linear(options.latent, options.hidden))),
      output_(register_module("output",
                              nn::Linear(options.hidden, options.pixels))) {}

VaeOutput VaeImpl::forward(const torch::Tensor& images) {
  const torch::Tensor hidden = torch::relu(encoder_(images.flatten(1)));
  const torch::Tensor mean = mean_(hidden);
  const torch::Tensor log_variance = log_variance_(hidden);
  torch::Tensor code = mean;
  if (is_training()) {
    code = mean + torch::exp(0.5 * log_variance) * torch::randn_like(mean);
  }
  return {output_(torch::relu(decoder_(code))), mean, log_variance};
}

torch::Tensor VaeLoss(const VaeOutput& output, const torch::Tensor& images) {
  const torch::Tensor cross_entropy =
      nn::functional::binary_cross_entropy_with_logits(
          output.logits, images.flatten(1),
          nn::functional::BinaryCrossEntropyWithLogitsFuncOptions().reduction(
              torch::kSum));
  const torch::Tensor divergence =
      -0.5 * torch::sum(1 + output.log_variance - output.mean.square() -
                        output.log_variance.exp());
  return cross_entropy + divergence;
}

}  // namespace hvdlite::trainers
