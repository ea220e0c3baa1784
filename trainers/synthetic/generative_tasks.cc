#include <torch/nn/functional/loss.h>
#include <torch/types.h>

#include <vector>

#include "trainers/models/generative_networks.h"
#include "trainers/models/image_transformers.h"
#include "trainers/models/resnet.h"
#include "trainers/synthetic/tasks.h"

namespace hvdlite::trainers {
namespace {

// Disables the gradients of a module's parameters during its lifetime.
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

constexpr int64_t kDcganImageSize = 64;

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

SyntheticTask MakeDcganTask(const SyntheticTaskOptions& options) {
  DcganOptions sizes;
  sizes.width = SizeOr(options.width, sizes.width);
  DcganGenerator generator(sizes);
  DcganDiscriminator discriminator(sizes);
  const auto both = std::make_shared<torch::nn::Module>("Dcgan");
  both->register_module("generator", generator);
  both->register_module("discriminator", discriminator);
  const at::MemoryFormat format = MemoryFormatOf(options);
  SetMemoryFormat(*both, format);

  const at::Generator random = GeneratorOf(options);
  const torch::Tensor noise =
      torch::randn({options.batch_size, sizes.latent}, random);
  const torch::Tensor images =
      torch::rand({options.batch_size, sizes.image_channels, kDcganImageSize,
                   kDcganImageSize},
                  random)
          .mul(2)
          .sub(1)
          .contiguous(format);
  return {.model = both, .loss = [=]() mutable {
            return DcganLoss(generator, discriminator, noise, images);
          }};
}

SyntheticTask MakeVaeTask(const SyntheticTaskOptions& options) {
  VaeOptions sizes;
  sizes.hidden = SizeOr(options.hidden, sizes.hidden);
  const torch::Tensor images =
      torch::rand({options.batch_size, sizes.pixels}, GeneratorOf(options));
  Vae model(sizes);
  return {.model = model.ptr(), .loss = [=]() mutable {
            return VaeLoss(model(images), images) / images.size(0);
          }};
}

SyntheticTask MakeSuperResolutionTask(const SyntheticTaskOptions& options) {
  constexpr int64_t kFactor = 2;
  const int64_t side = SizeOr(options.image_size, 256) / kFactor;
  SuperResolution model(SuperResolutionOptions{.factor = kFactor});
  const at::MemoryFormat format = MemoryFormatOf(options);
  SetMemoryFormat(*model, format);
  const torch::Tensor large =
      torch::rand({options.batch_size, 1, kFactor * side, kFactor * side},
                  GeneratorOf(options))
          .contiguous(format);
  const torch::Tensor small =
      torch::avg_pool2d(large, kFactor).contiguous(format);
  return {.model = model.ptr(), .loss = [=]() mutable {
            return torch::mse_loss(model(small).to(torch::kFloat32), large);
          }};
}

namespace {

// Converts pixels of 0 to 255 to the inputs of networks for ImageNet.
torch::Tensor Normalise(const torch::Tensor& images) {
  const auto of_channels = [](double red, double green, double blue) {
    return torch::tensor({red, green, blue}, torch::kFloat32).view({3, 1, 1});
  };
  return (images.to(torch::kFloat32) / 255 - of_channels(0.485, 0.456, 0.406)) /
         of_channels(0.229, 0.224, 0.225);
}

}  // namespace

// The VGG-16 that rates the images has random weights, equal on all ranks.
SyntheticTask MakeStyleTransferTask(const SyntheticTaskOptions& options) {
  const int64_t side = SizeOr(options.image_size, 256) / 4 * 4;
  StyleTransfer painter;
  VggFeatures judge;
  const auto both = std::make_shared<torch::nn::Module>("StyleTransfer");
  both->register_module("painter", painter);
  both->register_module("judge", judge);
  const at::MemoryFormat format = MemoryFormatOf(options);
  SetMemoryFormat(*both, format);

  const at::Generator random = GeneratorOf(options);
  const auto draw = [&](int64_t count) {
    return torch::rand({count, 3, side, side}, random)
        .mul(255)
        .contiguous(format);
  };
  const torch::Tensor images = draw(options.batch_size);
  const torch::Tensor style_image = draw(1);
  // Computed in the first call, since rank 0's weights arrive after this
  // function.
  std::vector<torch::Tensor> style;
  return {.model = both, .loss = [=]() mutable {
            if (style.empty()) {
              style = GramMatrices(judge(Normalise(style_image)));
            }
            return PerceptualLoss(judge(Normalise(painter(images))),
                                  judge(Normalise(images)), style);
          }};
}

}  // namespace hvdlite::trainers
