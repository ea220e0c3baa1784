// Tests of the models that classify or generate images.
#include <gtest/gtest.h>

#include <cmath>
#include <vector>

#include "trainers/models/generative_networks.h"
#include "trainers/models/image_networks.h"
#include "trainers/models/image_transformers.h"

namespace hvdlite::trainers {
namespace {

TEST(DigitNetTest, HasThePublishedNumberOfParameters) {
  int64_t count = 0;
  for (const torch::Tensor& parameter : DigitNet()->parameters()) {
    count += parameter.numel();
  }
  EXPECT_EQ(count, 21'840);
}

TEST(DigitNetTest, ReturnsLogProbabilitiesOfTenDigits) {
  DigitNet model;
  const torch::Tensor output = model(torch::randn({3, 1, 28, 28}));
  EXPECT_TRUE(torch::allclose(output.exp().sum(1), torch::ones({3})));
}

TEST(DigitNetTest, DropoutIsOnlyInTraining) {
  DigitNet model;
  const torch::Tensor images = torch::randn({3, 1, 28, 28});
  EXPECT_FALSE(model(images).equal(model(images)));
  model->eval();
  EXPECT_TRUE(model(images).equal(model(images)));
}

TEST(AlexNetAndVgg16Test, AcceptOtherImageSizes) {
  const std::vector<int64_t> logits = {1, 7};
  AlexNet alexnet(AlexNetOptions{.classes = 7, .hidden = 16});
  EXPECT_EQ(alexnet(torch::randn({1, 3, 224, 224})).sizes(), logits);
  Vgg16 vgg16(Vgg16Options{.classes = 7, .hidden = 16});
  EXPECT_EQ(vgg16(torch::randn({1, 3, 64, 64})).sizes(), logits);
}

TEST(DcganTest, GeneratorReturnsPixelsBetweenMinusOneAndOne) {
  DcganGenerator generator(DcganOptions{.latent = 6, .width = 2});
  EXPECT_LE(generator(100 * torch::randn({3, 6})).abs().max().item<float>(),
            1.0F);
}

TEST(DcganTest, InitialWeightsHaveThePublishedDeviation) {
  torch::manual_seed(1);
  const DcganGenerator generator;
  const auto parameters = generator->named_parameters();
  EXPECT_NEAR(parameters["layers.0.weight"].std().item<double>(), 0.02, 2e-4);
  EXPECT_NEAR(parameters["layers.1.weight"].std().item<double>(), 0.02, 2e-3);
  EXPECT_NEAR(parameters["layers.1.weight"].mean().item<double>(), 1.0, 5e-3);
}

TEST(VaeTest, CodeIsRandomOnlyInTraining) {
  Vae model;
  const torch::Tensor images = torch::rand({3, 784});
  EXPECT_FALSE(model(images).logits.equal(model(images).logits));
  model->eval();
  EXPECT_TRUE(model(images).logits.equal(model(images).logits));
}

TEST(VaeTest, LossIsCrossEntropyPlusDivergence) {
  // Every pixel costs ln 2; every code with mean 1 and variance 1 has a
  // divergence of 1/2.
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

TEST(SuperResolutionTest, EnlargesByItsFactor) {
  SuperResolution model(SuperResolutionOptions{.factor = 3});
  EXPECT_EQ(model(torch::rand({2, 1, 5, 7})).sizes(),
            (std::vector<int64_t>{2, 1, 15, 21}));
}

TEST(StyleTransferTest, ReturnsImagesOfTheSameSize) {
  EXPECT_EQ(StyleTransfer()(torch::rand({1, 3, 16, 24})).sizes(),
            (std::vector<int64_t>{1, 3, 16, 24}));
}

TEST(VggFeaturesTest, EachMapHasHalfTheSideAndWeightsAreConstant) {
  VggFeatures model;
  torch::Tensor images = torch::rand({1, 3, 16, 24});
  images.set_requires_grad(true);
  const std::vector<torch::Tensor> features = model(images);
  ASSERT_EQ(features.size(), 4U);
  for (int64_t i = 0; i < 4; ++i) {
    EXPECT_EQ(features[static_cast<size_t>(i)].sizes(),
              (std::vector<int64_t>{1, 64 << i, 16 >> i, 24 >> i}));
  }
  features[3].sum().backward();
  EXPECT_TRUE(images.grad().defined());
  for (const torch::Tensor& parameter : model->parameters()) {
    EXPECT_FALSE(parameter.requires_grad());
  }
}

TEST(PerceptualLossTest, IsWeightedSumOfContentAndStyle) {
  const std::vector<torch::Tensor> map = {torch::ones({1, 2, 2, 2}),
                                          2 * torch::ones({1, 1, 1, 2})};
  const std::vector<torch::Tensor> matrices = GramMatrices(map);
  EXPECT_TRUE(matrices[0].allclose(torch::full({1, 2, 2}, 4.0 / 8)));
  EXPECT_TRUE(matrices[1].allclose(torch::full({1, 1, 1}, 8.0 / 2)));
  EXPECT_EQ(PerceptualLoss(map, map, matrices).item<double>(), 0);
  // The content differs by 3 in the second map, the style by 1/2 in the first.
  const std::vector<torch::Tensor> content = {map[0], map[1] + 3};
  const std::vector<torch::Tensor> style = {matrices[0] + 0.5, matrices[1]};
  EXPECT_NEAR(PerceptualLoss(map, content, style).item<double>(),
              1e5 * 9 + 1e10 * 0.25, 1e3);
}

}  // namespace
}  // namespace hvdlite::trainers
