// Tests of the models that make images.
#include <gtest/gtest.h>

#include <cmath>
#include <vector>

#include "tests/trainers/models/model_testing.h"
#include "trainers/models/generative_networks.h"

namespace hvdlite::trainers {
namespace {

TEST(DcganTest, BothNetworksHaveThePublishedNumberOfParameters) {
  EXPECT_EQ(CountParameters(*DcganGenerator()), 3'576'704);
  EXPECT_EQ(CountParameters(*DcganDiscriminator()), 2'765'568);
}

TEST(DcganTest, GeneratorMakesImagesThatTheDiscriminatorJudges) {
  DcganGenerator generator(DcganOptions{.latent = 6, .width = 2});
  DcganDiscriminator discriminator(DcganOptions{.width = 2});
  const torch::Tensor images = generator(torch::randn({3, 6}));
  EXPECT_EQ(images.sizes(), (std::vector<int64_t>{3, 3, 64, 64}));
  EXPECT_LE(images.abs().max().item<float>(), 1.0F);
  EXPECT_EQ(discriminator(images).sizes(), (std::vector<int64_t>{3}));
}

TEST(DcganTest, BothNetworksGetFiniteGradients) {
  DcganGenerator generator(DcganOptions{.latent = 6, .width = 2});
  DcganDiscriminator discriminator(DcganOptions{.width = 2});
  discriminator(generator(torch::randn({3, 6}))).sum().backward();
  ExpectFiniteGradients(*generator);
  ExpectFiniteGradients(*discriminator);
}

TEST(DcganTest, WeightsStartWithThePublishedDeviation) {
  torch::manual_seed(1);
  const DcganGenerator generator;
  const auto parameters = generator->named_parameters();
  EXPECT_NEAR(parameters["layers.0.weight"].std().item<double>(), 0.02, 2e-4);
  EXPECT_NEAR(parameters["layers.1.weight"].std().item<double>(), 0.02, 2e-3);
  EXPECT_NEAR(parameters["layers.1.weight"].mean().item<double>(), 1.0, 5e-3);
}

TEST(VaeTest, HasThePublishedNumberOfParameters) {
  EXPECT_EQ(CountParameters(*Vae()), 652'824);
}

TEST(VaeTest, EncodesAndDecodesImages) {
  Vae model;
  const VaeOutput output = model(torch::rand({3, 1, 28, 28}));
  EXPECT_EQ(output.logits.sizes(), (std::vector<int64_t>{3, 784}));
  EXPECT_EQ(output.mean.sizes(), (std::vector<int64_t>{3, 20}));
  EXPECT_EQ(output.log_variance.sizes(), (std::vector<int64_t>{3, 20}));
}

TEST(VaeTest, DrawsTheCodeInTrainingOnly) {
  Vae model;
  const torch::Tensor images = torch::rand({3, 784});
  EXPECT_FALSE(model(images).logits.equal(model(images).logits));
  model->eval();
  EXPECT_TRUE(model(images).logits.equal(model(images).logits));
}

TEST(VaeTest, LossIsCrossEntropyPlusDivergence) {
  // Every pixel costs ln 2; every code of mean 1 and variance 1 diverges by
  // 1/2.
  const VaeOutput unsure{torch::zeros({2, 4}), torch::ones({2, 3}),
                         torch::zeros({2, 3})};
  EXPECT_NEAR(VaeLoss(unsure, torch::ones({2, 2, 2})).item<double>(),
              8 * std::log(2.0) + 6 * 0.5, 1e-5);
  // Variance e and mean 0: (e - 2) / 2.
  const VaeOutput wide{torch::zeros({1, 1}), torch::zeros({1, 1}),
                       torch::ones({1, 1})};
  EXPECT_NEAR(VaeLoss(wide, torch::zeros({1, 1})).item<double>(),
              std::log(2.0) + (std::exp(1.0) - 2.0) / 2, 1e-6);
}

TEST(VaeTest, EveryParameterGetsAFiniteGradient) {
  Vae model;
  const torch::Tensor images = torch::rand({2, 784});
  VaeLoss(model(images), images).backward();
  ExpectFiniteGradients(*model);
}

}  // namespace
}  // namespace hvdlite::trainers
