// Tests of the perceptron, the recurrent networks, the recommender and the
// policies.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <stdexcept>

#include "trainers/models/policies.h"
#include "trainers/models/small_networks.h"

namespace hvdlite::trainers {
namespace {

using ::testing::HasSubstr;
using ::testing::ThrowsMessage;

TEST(MlpTest, ReturnsLogitsOfBothSigns) {
  torch::manual_seed(1);
  Mlp model(MlpOptions{.widths = {12, 5, 40}});
  const torch::Tensor logits = model(torch::randn({2, 3, 4}));
  EXPECT_LT(logits.min().item<float>(), 0.0F);
  EXPECT_GT(logits.max().item<float>(), 0.0F);
}

TEST(MlpTest, IsNotLinear) {
  torch::manual_seed(1);
  Mlp model(MlpOptions{.widths = {12, 5, 3}});
  const torch::Tensor input = torch::randn({1, 12});
  const torch::Tensor middle = model(torch::zeros({1, 12}));
  EXPECT_FALSE(torch::allclose(model(input) + model(-input), 2 * middle));
}

TEST(MlpTest, OneWidthIsAnError) {
  EXPECT_THAT([] { Mlp(MlpOptions{.widths = {784}}); },
              ThrowsMessage<std::invalid_argument>(
                  HasSubstr("widths of its input and output")));
}

TEST(LstmClassifierTest, LogitsDependOnEveryStep) {
  torch::manual_seed(1);
  LstmClassifier model(
      LstmClassifierOptions{.features = 3, .hidden = 8, .classes = 4});
  const torch::Tensor sequences = torch::randn({2, 5, 3});
  const torch::Tensor logits = model(sequences);
  for (int64_t step = 0; step < 5; ++step) {
    torch::Tensor changed = sequences.clone();
    changed.select(1, step).add_(1.0);
    EXPECT_FALSE(model(changed).equal(logits)) << step;
  }
}

TEST(WordLanguageModelTest, LogitsDependOnlyOnEarlierWords) {
  torch::manual_seed(1);
  WordLanguageModel model(
      WordLanguageModelOptions{.vocabulary = 9, .units = 6});
  model->eval();
  const torch::Tensor before = model(torch::tensor({{1, 2, 3, 4}}));
  const torch::Tensor after = model(torch::tensor({{1, 2, 8, 4}}));
  EXPECT_TRUE(after.narrow(1, 0, 2).equal(before.narrow(1, 0, 2)));
  EXPECT_FALSE(after.select(1, 2).equal(before.select(1, 2)));
  EXPECT_FALSE(after.select(1, 3).equal(before.select(1, 3)));
}

TEST(WavePredictorTest, PredictionsDependOnlyOnEarlierValues) {
  torch::manual_seed(1);
  WavePredictor model(WavePredictorOptions{.hidden = 5});
  const torch::Tensor waves = torch::randn({2, 6});
  const torch::Tensor before = model(waves);
  torch::Tensor changed = waves.clone();
  changed.select(1, 3).add_(1);
  const torch::Tensor after = model(changed);
  EXPECT_TRUE(after.narrow(1, 0, 3).equal(before.narrow(1, 0, 3)));
  for (int64_t step = 3; step < 6; ++step) {
    EXPECT_FALSE(after.select(1, step).equal(before.select(1, step))) << step;
  }
}

TEST(NeuralCollaborativeFilteringTest, LogitsDependOnUserAndItem) {
  torch::manual_seed(1);
  NeuralCollaborativeFiltering model(
      NeuralCollaborativeFilteringOptions{.users = 3, .items = 5});
  const torch::Tensor logits =
      model(torch::tensor({0, 0, 2}), torch::tensor({4, 1, 4}));
  ASSERT_EQ(logits.sizes(), (std::vector<int64_t>{3}));
  EXPECT_FALSE(logits[0].equal(logits[1]));
  EXPECT_FALSE(logits[0].equal(logits[2]));
}

TEST(PolicyTest, OutputsAreProbabilitiesOfActions) {
  const auto expect_probabilities = [](const torch::Tensor& logarithms) {
    EXPECT_TRUE(logarithms.exp().sum(1).allclose(torch::ones({2})));
  };
  expect_probabilities(CartPolePolicy()(torch::randn({2, 4})));
  expect_probabilities(
      FramePolicy()(
          torch::randint(256, {2, kFrameStack, kFrameSide, kFrameSide})
              .to(torch::kUInt8))
          .log_probabilities);
}

}  // namespace
}  // namespace hvdlite::trainers
