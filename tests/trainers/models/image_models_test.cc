// Tests of the smaller classifiers of images and clips.
#include <gtest/gtest.h>

#include <vector>

#include "tests/trainers/models/model_testing.h"
#include "trainers/models/image_networks.h"

namespace hvdlite::trainers {
namespace {

TEST(DigitNetTest, HasThePublishedNumberOfParameters) {
  EXPECT_EQ(CountParameters(*DigitNet()), 21'840);
}

TEST(DigitNetTest, MakesLogProbabilitiesOfTenDigits) {
  DigitNet model;
  const torch::Tensor output = model(torch::randn({3, 1, 28, 28}));
  EXPECT_EQ(output.sizes(), (std::vector<int64_t>{3, 10}));
  EXPECT_TRUE(torch::allclose(output.exp().sum(1), torch::ones({3})));
}

TEST(DigitNetTest, DropsInTrainingOnly) {
  DigitNet model;
  const torch::Tensor images = torch::randn({3, 1, 28, 28});
  EXPECT_FALSE(model(images).equal(model(images)));
  model->eval();
  EXPECT_TRUE(model(images).equal(model(images)));
}

TEST(DigitNetTest, EveryParameterGetsAFiniteGradient) {
  DigitNet model;
  model(torch::randn({2, 1, 28, 28})).select(1, 3).sum().backward();
  ExpectFiniteGradients(*model);
}

TEST(AlexNetTest, HasThePublishedNumberOfParameters) {
  EXPECT_EQ(CountParameters(*AlexNet()), 61'100'840);
}

TEST(AlexNetTest, MakesOneLogitPerClassForImagesOfAnySize) {
  AlexNet model(AlexNetOptions{.classes = 7, .hidden = 16});
  model->eval();
  for (const int64_t size : {63, 224}) {
    EXPECT_EQ(model(torch::randn({2, 3, size, size})).sizes(),
              (std::vector<int64_t>{2, 7}))
        << size;
  }
}

TEST(AlexNetTest, EveryParameterGetsAFiniteGradient) {
  AlexNet model(AlexNetOptions{.classes = 7, .hidden = 16});
  model(torch::randn({2, 3, 64, 64})).sum().backward();
  ExpectFiniteGradients(*model);
}

TEST(Vgg16Test, HasThePublishedNumberOfParameters) {
  EXPECT_EQ(CountParameters(*Vgg16()), 138'357'544);
}

TEST(Vgg16Test, MakesOneLogitPerClassForImagesOfAnySize) {
  Vgg16 model(Vgg16Options{.classes = 7, .hidden = 16});
  model->eval();
  for (const int64_t size : {32, 64}) {
    EXPECT_EQ(model(torch::randn({2, 3, size, size})).sizes(),
              (std::vector<int64_t>{2, 7}))
        << size;
  }
}

TEST(Vgg16Test, EveryParameterGetsAFiniteGradient) {
  Vgg16 model(Vgg16Options{.classes = 7, .hidden = 16});
  model(torch::randn({2, 3, 32, 32})).sum().backward();
  ExpectFiniteGradients(*model);
}

// The paper gives 17.5 million.
TEST(Conv3dNetTest, HasTheNumberOfParametersThatItsSizesGive) {
  constexpr int64_t kTotal =
      3 * 64 * 27 + 64 + 64 * 128 * 27 + 128 + 128 * 256 * 27 + 256 +
      2 * (256 * 256 * 27 + 256) +  // convolutions
      256 * 16 * 2048 + 2048 + 2048 * 2048 + 2048 + 2048 * 101 + 101;
  static_assert(kTotal == 17'444'965);
  EXPECT_EQ(CountParameters(*Conv3dNet()), kTotal);
}

TEST(Conv3dNetTest, MakesOneLogitPerClass) {
  Conv3dNet model(Conv3dNetOptions{.classes = 7, .width = 2, .hidden = 8});
  EXPECT_EQ(model(torch::randn({1, 3, 16, 112, 112})).sizes(),
            (std::vector<int64_t>{1, 7}));
}

TEST(Conv3dNetTest, EveryParameterGetsAFiniteGradient) {
  Conv3dNet model(Conv3dNetOptions{.classes = 7, .width = 2, .hidden = 8});
  model(torch::randn({1, 3, 16, 112, 112})).sum().backward();
  ExpectFiniteGradients(*model);
}

}  // namespace
}  // namespace hvdlite::trainers
