#include "trainers/synthetic/dcgan_loss.h"

#include <torch/nn/functional/loss.h>

#include <vector>

namespace hvdlite::trainers {
namespace {

// While it lives, a module's parameters get no gradients.
class Frozen {
 public:
  explicit Frozen(torch::nn::Module& module)
      : parameters_(module.parameters()) {
    SetRequiresGrad(false);
  }
  ~Frozen() { SetRequiresGrad(true); }
  Frozen(const Frozen&) = delete;
  Frozen& operator=(const Frozen&) = delete;

 private:
  void SetRequiresGrad(bool requires_grad) {
    for (torch::Tensor& p : parameters_) p.set_requires_grad(requires_grad);
  }

  std::vector<torch::Tensor> parameters_;
};

torch::Tensor LossIf(bool real, const torch::Tensor& logits) {
  return torch::nn::functional::binary_cross_entropy_with_logits(
      logits, torch::full_like(logits, real ? 1.0 : 0.0));
}

}  // namespace

torch::Tensor DcganLoss(DcganGenerator& generator,
                        DcganDiscriminator& discriminator,
                        const torch::Tensor& noise,
                        const torch::Tensor& images) {
  const torch::Tensor made = generator(noise);
  const torch::Tensor of_discriminator =
      LossIf(true, discriminator(images)) +
      LossIf(false, discriminator(made.detach()));
  const Frozen frozen(*discriminator);
  return of_discriminator + LossIf(true, discriminator(made));
}

}  // namespace hvdlite::trainers
