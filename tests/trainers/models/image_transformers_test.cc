// Tests of the networks that make images of images.
#include "trainers/models/image_transformers.h"

#include <gtest/gtest.h>

#include <vector>

#include "tests/trainers/models/model_testing.h"

namespace hvdlite::trainers {
namespace {

TEST(SuperResolutionTest, EnlargesByItsFactor) {
  SuperResolution model(SuperResolutionOptions{.factor = 3});
  EXPECT_EQ(model(torch::rand({2, 1, 5, 7})).sizes(),
            (std::vector<int64_t>{2, 1, 15, 21}));
}

TEST(SuperResolutionTest, HasTheNumberOfParametersThatItsSizesGive) {
  EXPECT_EQ(
      CountParameters(*SuperResolution()),
      25 * 64 + 64 + 9 * 64 * 64 + 64 + 9 * 64 * 32 + 32 + 9 * 32 * 4 + 4);
}

TEST(SuperResolutionTest, EveryParameterGetsAFiniteGradient) {
  SuperResolution model;
  model(torch::rand({1, 1, 6, 6})).square().sum().backward();
  ExpectFiniteGradients(*model);
}

TEST(StyleTransferTest, HasThePublishedNumberOfParameters) {
  EXPECT_EQ(CountParameters(*StyleTransfer()), 1'679'235);
}

TEST(StyleTransferTest, MakesImagesOfTheSameSizeAndLearns) {
  torch::manual_seed(1);
  StyleTransfer model;
  const torch::Tensor images = model(torch::rand({1, 3, 16, 24}));
  EXPECT_EQ(images.sizes(), (std::vector<int64_t>{1, 3, 16, 24}));
  images.square().sum().backward();
  ExpectFiniteGradients(*model);
}

TEST(VggFeaturesTest, HalvesTheSidesFromMapToMapAndDoesNotLearn) {
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

TEST(PerceptualLossTest, AddsContentAndStyleByTheirWeights) {
  const std::vector<torch::Tensor> map = {torch::ones({1, 2, 2, 2}),
                                          2 * torch::ones({1, 1, 1, 2})};
  const std::vector<torch::Tensor> matrices = GramMatrices(map);
  EXPECT_TRUE(matrices[0].allclose(torch::full({1, 2, 2}, 4.0 / 8)));
  EXPECT_TRUE(matrices[1].allclose(torch::full({1, 1, 1}, 8.0 / 2)));
  EXPECT_EQ(PerceptualLoss(map, map, matrices).item<double>(), 0);
  // Content differs by 3 in the second map; style by 1/2 in the first.
  const std::vector<torch::Tensor> content = {map[0], map[1] + 3};
  const std::vector<torch::Tensor> style = {matrices[0] + 0.5, matrices[1]};
  EXPECT_NEAR(PerceptualLoss(map, content, style).item<double>(),
              1e5 * 9 + 1e10 * 0.25, 1e3);
}

}  // namespace
}  // namespace hvdlite::trainers
