#include <torch/types.h>

#include "trainers/models/dcgan.h"
#include "trainers/models/memory_format.h"
#include "trainers/models/vae.h"
#include "trainers/synthetic/dcgan_loss.h"
#include "trainers/synthetic/tasks.h"

namespace hvdlite::trainers {
namespace {

constexpr int64_t kDcganImageSize = 64;

}  // namespace

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

}  // namespace hvdlite::trainers
