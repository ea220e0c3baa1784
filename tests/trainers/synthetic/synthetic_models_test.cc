#include "trainers/synthetic/synthetic_models.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <torch/torch.h>

#include <stdexcept>
#include <vector>

#include "tools/support/input_error.h"
#include "trainers/models/generative_networks.h"
#include "trainers/synthetic/tasks.h"

namespace hvdlite::trainers {
namespace {

// The loss of a new model, in evaluation mode, with weights of one seed.
double LossOf(const SyntheticTaskOptions& options) {
  torch::manual_seed(1);
  const torch::NoGradGuard no_grad;
  const SyntheticTask task = MakeSyntheticTask(options);
  task.model->eval();
  return task.loss().item<double>();
}

TEST(SyntheticModelsTest, BatchIsDrawnOnceFromTheSeed) {
  const SyntheticTaskOptions options = {.model = "mlp", .batch_size = 4};
  SyntheticTaskOptions other_seed = options;
  other_seed.seed = 1;
  EXPECT_EQ(LossOf(options), LossOf(options));
  EXPECT_NE(LossOf(options), LossOf(other_seed));

  const SyntheticTask task = MakeSyntheticTask(options);
  EXPECT_EQ(task.loss().item<double>(), task.loss().item<double>());
}

TEST(SyntheticModelsTest, DataFormatChangesTheLayoutAndNotTheLoss) {
  const SyntheticTaskOptions nchw = {
      .model = "resnet18", .batch_size = 2, .image_size = 32, .classes = 10};
  SyntheticTaskOptions nhwc = nchw;
  nhwc.data_format = "NHWC";
  EXPECT_NEAR(LossOf(nchw), LossOf(nhwc), 1e-3);
  const SyntheticTask task = MakeSyntheticTask(nhwc);
  EXPECT_TRUE(
      task.model->named_parameters()["layer1.0.conv1.weight"].is_contiguous(
          at::MemoryFormat::ChannelsLast));
}

TEST(SyntheticModelsTest, SizesOfZeroAreThePublishedOnes) {
  const auto parameters = [](const SyntheticTaskOptions& options) {
    int64_t count = 0;
    for (const auto& p : MakeSyntheticTask(options).model->parameters()) {
      count += p.numel();
    }
    return count;
  };
  // Of torchvision.
  EXPECT_EQ(parameters({.model = "resnet18", .batch_size = 1}), 11'689'512);
  EXPECT_EQ(parameters({.model = "alexnet", .batch_size = 1}), 61'100'840);
}

// The gradients of `loss` for the parameters of `model`.
std::vector<torch::Tensor> Gradients(const torch::Tensor& loss,
                                     const torch::nn::Module& model) {
  return torch::autograd::grad({loss}, model.parameters());
}

void ExpectGradients(const torch::nn::Module& model,
                     const std::vector<torch::Tensor>& expected) {
  const std::vector<torch::Tensor> parameters = model.parameters();
  ASSERT_EQ(parameters.size(), expected.size());
  for (size_t i = 0; i < expected.size(); ++i) {
    EXPECT_TRUE(parameters[i].requires_grad()) << i;
    EXPECT_TRUE(torch::allclose(parameters[i].grad(), expected[i], 1e-4, 1e-6))
        << i;
  }
}

TEST(SyntheticModelsTest, DcganGivesEachNetworkTheGradientOfItsOwnLoss) {
  torch::manual_seed(1);
  const DcganOptions sizes = {.width = 2};
  DcganGenerator generator(sizes);
  DcganDiscriminator discriminator(sizes);
  const torch::Tensor noise = torch::randn({4, sizes.latent});
  const torch::Tensor images = torch::randn({4, 3, 64, 64});
  // -log D(x), -log(1 - D(G(z))) and -log D(G(z)) of the paper.
  const torch::Tensor made = generator(noise);
  const auto of_discriminator =
      Gradients(torch::softplus(-discriminator(images)).mean() +
                    torch::softplus(discriminator(made.detach())).mean(),
                *discriminator);
  const auto of_generator =
      Gradients(torch::softplus(-discriminator(made)).mean(), *generator);

  DcganLoss(generator, discriminator, noise, images).backward();
  ExpectGradients(*discriminator, of_discriminator);
  ExpectGradients(*generator, of_generator);
}

TEST(SyntheticModelsTest, ImageLoadingHasNoModel) {
  const SyntheticTask task =
      MakeSyntheticTask({.model = "image_loading", .batch_size = 4});
  EXPECT_EQ(task.model, nullptr);
  for (int i = 0; i < 40; ++i) EXPECT_EQ(task.loss().item<double>(), 0);
}

TEST(SyntheticModelsTest, SizeThatDoesNotSuitIsRefused) {
  EXPECT_THROW(MakeSyntheticTask({.model = "vae", .image_size = 32}),
               support::InputError);
}

TEST(SyntheticModelsTest, UnknownModelIsAnError) {
  EXPECT_THROW(MakeSyntheticTask({.model = "resnet51"}), std::invalid_argument);
}

}  // namespace
}  // namespace hvdlite::trainers
