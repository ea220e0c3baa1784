#include <gtest/gtest.h>
#include <torch/torch.h>

#include "trainers/models/resnet.h"
#include "trainers/step.h"

namespace hvdlite::trainers {
namespace {

namespace F = torch::nn::functional;

class Bfloat16AutocastTest : public ::testing::Test {
 protected:
  at::ScalarType TypeOfConvolution() {
    return convolution_(torch::ones({1, 3, 8, 8})).scalar_type();
  }

  torch::nn::Conv2d convolution_{torch::nn::Conv2dOptions(3, 4, 3)};
};

TEST_F(Bfloat16AutocastTest, ConvolutionIsInBfloat16InsideAndFloatOutside) {
  EXPECT_EQ(TypeOfConvolution(), torch::kFloat32);
  {
    const Bfloat16Autocast autocast(/*enabled=*/true);
    EXPECT_EQ(TypeOfConvolution(), torch::kBFloat16);
  }
  EXPECT_EQ(TypeOfConvolution(), torch::kFloat32);
}

TEST_F(Bfloat16AutocastTest, DoesNothingUnlessEnabled) {
  const Bfloat16Autocast autocast(/*enabled=*/false);
  EXPECT_EQ(TypeOfConvolution(), torch::kFloat32);
}

TEST_F(Bfloat16AutocastTest, InnerOneLeavesTheOuterOneEnabled) {
  const Bfloat16Autocast outer(/*enabled=*/true);
  { const Bfloat16Autocast inner(/*enabled=*/true); }
  EXPECT_EQ(TypeOfConvolution(), torch::kBFloat16);
}

TEST_F(Bfloat16AutocastTest, ConvolutionUsesChangedWeights) {
  const torch::Tensor images = torch::ones({1, 3, 8, 8});
  const auto sum = [&] {
    const Bfloat16Autocast autocast(/*enabled=*/true);
    return convolution_(images).to(torch::kFloat32).abs().sum().item<float>();
  };
  EXPECT_GT(sum(), 0);
  {
    const torch::NoGradGuard no_grad;
    convolution_->weight.zero_();
    convolution_->bias.zero_();
  }
  EXPECT_EQ(sum(), 0);
}

TEST_F(Bfloat16AutocastTest, GradientsOfTheWeightsAreFloat) {
  torch::Tensor output;
  {
    const Bfloat16Autocast autocast(/*enabled=*/true);
    output = convolution_(torch::ones({1, 3, 8, 8}));
  }
  output.to(torch::kFloat32).sum().backward();
  EXPECT_EQ(convolution_->weight.grad().scalar_type(), torch::kFloat32);
}

TEST(SlowBfloat16Test, ProcessorWithoutInstructionsGetsAWarning) {
  const std::string warning = SlowBfloat16Warning({"sse2", "avx2"});
  EXPECT_NE(warning.find("(avx512_bf16 or amx_bf16)"), std::string::npos);
  EXPECT_NE(warning.find("Remedy: remove --bf16"), std::string::npos);
  EXPECT_EQ(SlowBfloat16Warning({"sse2", "amx_bf16"}), "");
}

TEST(Bfloat16TrainingTest, ResnetOverfitsOneBatch) {
  torch::manual_seed(1);
  ResNet model(ResNetOptions{
      .architecture = "resnet8", .classes = 4, .small_image_stem = true});
  torch::optim::SGD sgd(model->parameters(),
                        torch::optim::SGDOptions(0.05).momentum(0.9));
  const torch::Tensor images = torch::randn({16, 3, 16, 16});
  const torch::Tensor labels = torch::arange(16).remainder(4);
  double first = 0;
  double last = 0;
  for (int step = 0; step < 15; ++step) {
    torch::Tensor logits;
    {
      const Bfloat16Autocast autocast(/*enabled=*/true);
      logits = model(images);
    }
    EXPECT_EQ(logits.scalar_type(), torch::kBFloat16);
    const torch::Tensor loss =
        F::cross_entropy(logits.to(torch::kFloat32), labels);
    sgd.zero_grad();
    loss.backward();
    sgd.step();
    last = loss.item<double>();
    if (step == 0) first = last;
  }
  EXPECT_GT(first, 1);
  EXPECT_LT(last, 0.2);
}

}  // namespace
}  // namespace hvdlite::trainers
