#include "trainers/models/resnet.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <torch/torch.h>

#include <algorithm>
#include <cstdint>
#include <string>
#include <vector>

#include "support/gradient_sizes.h"

namespace hvdlite::trainers {
namespace {

struct Size {
  const char* architecture;
  int64_t parameters;
  size_t tensors;
};

int64_t CountParameters(const torch::nn::Module& model) {
  int64_t count = 0;
  for (const torch::Tensor& parameter : model.parameters()) {
    count += parameter.numel();
  }
  return count;
}

class ResNetSizeTest : public ::testing::TestWithParam<Size> {};

TEST_P(ResNetSizeTest, HasThePublishedNumberOfParameters) {
  const ResNet model(
      ResNetOptions{.architecture = GetParam().architecture, .classes = 1000});
  EXPECT_EQ(CountParameters(*model), GetParam().parameters);
  EXPECT_EQ(model->parameters().size(), GetParam().tensors);
}

INSTANTIATE_TEST_SUITE_P(Architectures, ResNetSizeTest,
                         ::testing::Values(Size{"resnet18", 11'689'512, 62},
                                           Size{"resnet34", 21'797'672, 110},
                                           Size{"resnet50", 25'557'032, 161},
                                           Size{"resnet50_v1", 25'557'032, 161},
                                           Size{"resnet101", 44'549'160, 314},
                                           Size{"resnet152", 60'192'808, 467}),
                         [](const auto& info) {
                           return std::string(info.param.architecture);
                         });

TEST(ResNetTest, GradientsHaveTheSizesThatToolsAssume) {
  for (const int64_t classes : {10, 1000}) {
    const ResNet model(
        ResNetOptions{.architecture = "resnet50", .classes = classes});
    std::vector<int64_t> parameters;
    for (const torch::Tensor& parameter : model->parameters()) {
      parameters.push_back(parameter.numel());
    }
    // Backward visits the layers from the last to the first.
    std::reverse(parameters.begin(), parameters.end());
    EXPECT_EQ(parameters, support::Resnet50GradientElements(classes))
        << classes << " classes";
  }
}

TEST(ResNetTest, TinyNetworkHasFewParameters) {
  const ResNet model(ResNetOptions{
      .architecture = "resnet8", .classes = 10, .small_image_stem = true});
  EXPECT_EQ(CountParameters(*model), 78'042);
}

TEST(ResNetTest, UnknownArchitectureIsAnErrorWithAllNames) {
  EXPECT_THAT([] { FindResNetArchitecture("resnet51"); },
              ::testing::ThrowsMessage<std::invalid_argument>(::testing::AllOf(
                  ::testing::HasSubstr("resnet51"),
                  ::testing::HasSubstr("resnet50, resnet50_v1, resnet101"))));
}

TEST(ResNetTest, ReturnsOneLogitPerClassForLargeAndSmallImages) {
  ResNet large(ResNetOptions{.architecture = "resnet50", .classes = 7});
  EXPECT_EQ(large(torch::randn({2, 3, 64, 64})).sizes(),
            (std::vector<int64_t>{2, 7}));
  ResNet small(ResNetOptions{
      .architecture = "resnet18", .classes = 10, .small_image_stem = true});
  EXPECT_EQ(small(torch::randn({2, 3, 32, 32})).sizes(),
            (std::vector<int64_t>{2, 10}));
}

TEST(ResNetTest, SmallImageStemKeepsTheResolution) {
  ResNet model(ResNetOptions{
      .architecture = "resnet18", .classes = 10, .small_image_stem = true});
  const auto parameters = model->named_parameters();
  EXPECT_EQ(parameters["conv1.weight"].sizes(),
            (std::vector<int64_t>{64, 3, 3, 3}));
  EXPECT_FALSE(model->named_children().contains("maxpool"));
}

TEST(ResNetTest, StridesAreInThe3x3ConvolutionsExceptForV1) {
  for (const bool v1 : {false, true}) {
    ResNet model(
        ResNetOptions{.architecture = v1 ? "resnet50_v1" : "resnet50"});
    const auto modules = model->named_modules();
    const auto stride = [&](const std::string& name) {
      return modules[name]->as<torch::nn::Conv2d>()->options.stride()->at(0);
    };
    EXPECT_EQ(stride("layer2.0.conv1"), v1 ? 2 : 1);
    EXPECT_EQ(stride("layer2.0.conv2"), v1 ? 1 : 2);
    EXPECT_EQ(stride("layer2.0.downsample.0"), 2);
    EXPECT_EQ(stride("layer1.0.conv1"), 1);
    EXPECT_EQ(stride("layer1.0.conv2"), 1);
    EXPECT_EQ(stride("layer2.1.conv1"), 1);
  }
}

TEST(ResNetTest, InitialConvolutionsHaveHesVariance) {
  torch::manual_seed(1);
  ResNet model(ResNetOptions{.architecture = "resnet18"});
  const torch::Tensor weight =
      model->named_parameters()["layer4.1.conv1.weight"];
  const double expected = std::sqrt(2.0 / (512 * 3 * 3));
  EXPECT_NEAR(weight.std().item<double>(), expected, expected * 0.01);
}

TEST(ResNetTest, ZeroInitialisedResidualBlocksAreTheIdentity) {
  for (const char* architecture : {"resnet18", "resnet50"}) {
    ResNet model(ResNetOptions{.architecture = architecture,
                               .classes = 10,
                               .small_image_stem = true,
                               .zero_init_residual = true});
    // Block 1 of a stage has no projection, so only its branch could change the
    // input; relu(x) = x for the output of a block.
    const auto stage = model->named_children()["layer1"];
    auto* sequential = stage->as<torch::nn::Sequential>();
    const torch::Tensor input = torch::rand(
        {1, architecture == std::string("resnet50") ? 256 : 64, 8, 8});
    const torch::Tensor output =
        (sequential->begin() + 1)->forward<torch::Tensor>(input);
    EXPECT_TRUE(output.equal(input)) << architecture;
  }
}

TEST(ResNetTest, BlockedLayoutHasTheSameLossGradientsAndStatistics) {
  const ResNetOptions options = {
      .architecture = "resnet8", .classes = 10, .small_image_stem = true};
  torch::manual_seed(1);
  ResNet plain(options);
  torch::manual_seed(1);
  ResNet blocked(options);
  const torch::Tensor images = torch::randn({4, 3, 16, 16});
  const torch::Tensor labels = torch::tensor({3, 1, 4, 1}, torch::kInt64);
  const auto loss_of = [&](ResNet& model, const torch::Tensor& input) {
    const torch::Tensor loss =
        torch::nn::functional::cross_entropy(model(input), labels);
    loss.backward();
    return loss.item<double>();
  };
  EXPECT_NEAR(loss_of(plain, images), loss_of(blocked, images.to_mkldnn()),
              1e-5);
  const auto expected = plain->named_parameters();
  for (const auto& parameter : blocked->named_parameters()) {
    EXPECT_TRUE(parameter.value().grad().allclose(
        expected[parameter.key()].grad(), 1e-3, 1e-5))
        << parameter.key();
  }
  const auto statistics = plain->named_buffers();
  for (const auto& buffer : blocked->named_buffers()) {
    EXPECT_TRUE(buffer.value().allclose(statistics[buffer.key()], 1e-4, 1e-5))
        << buffer.key();
  }
  plain->eval();
  blocked->eval();
  EXPECT_TRUE(plain(images).allclose(blocked(images.to_mkldnn()), 1e-4, 1e-5));
}

TEST(ResNetTrunkTest, HasOneStagePerStride) {
  torch::nn::Sequential trunk = MakeResNetTrunk("resnet18", {1, 2, 1});
  EXPECT_EQ(trunk->forward(torch::randn({1, 3, 64, 32})).sizes(),
            (std::vector<int64_t>{1, 256, 8, 4}));
  // ResNet-18 without its last stage and its linear layer.
  EXPECT_EQ(CountParameters(*trunk), 11'689'512 - 8'393'728 - 513'000);
}

TEST(MemoryFormatTest, ChannelsLastGivesTheSameResultWithTheSameTensors) {
  ResNet model(ResNetOptions{
      .architecture = "resnet8", .classes = 10, .small_image_stem = true});
  model->eval();
  const torch::Tensor images = torch::randn({2, 3, 32, 32});
  const torch::Tensor expected = model(images);
  const torch::Tensor held = model->named_parameters()["conv1.weight"];

  SetMemoryFormat(*model, at::MemoryFormat::ChannelsLast);
  EXPECT_TRUE(held.is_contiguous(at::MemoryFormat::ChannelsLast));
  EXPECT_FALSE(held.is_contiguous());
  EXPECT_TRUE(
      torch::allclose(model(images.contiguous(at::MemoryFormat::ChannelsLast)),
                      expected, 1e-4, 1e-5));

  SetMemoryFormat(*model, at::MemoryFormat::Contiguous);
  EXPECT_TRUE(held.is_contiguous());
}

}  // namespace
}  // namespace hvdlite::trainers
