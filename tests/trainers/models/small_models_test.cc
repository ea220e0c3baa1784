// Tests of the perceptron, the recurrent networks and the recommender.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <stdexcept>
#include <vector>

#include "tests/trainers/models/model_testing.h"
#include "trainers/models/small_networks.h"

namespace hvdlite::trainers {
namespace {

using ::testing::HasSubstr;
using ::testing::ThrowsMessage;

TEST(MlpTest, HasTheNumberOfParametersThatItsWidthsGive) {
  EXPECT_EQ(CountParameters(*Mlp()),
            784 * 512 + 512 + 512 * 512 + 512 + 512 * 10 + 10);
}

TEST(MlpTest, MakesLogitsOfBothSigns) {
  torch::manual_seed(1);
  Mlp model(MlpOptions{.widths = {12, 5, 40}});
  const torch::Tensor logits = model(torch::randn({2, 3, 4}));
  EXPECT_EQ(logits.sizes(), (std::vector<int64_t>{2, 40}));
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

TEST(MlpTest, EveryParameterGetsAFiniteGradient) {
  Mlp model;
  model(torch::randn({2, 784})).sum().backward();
  ExpectFiniteGradients(*model);
}

TEST(LstmClassifierTest, HasTheNumberOfParametersThatItsSizesGive) {
  constexpr int64_t kFirst = 4 * 128 * (28 + 128) + 2 * 4 * 128;
  constexpr int64_t kSecond = 4 * 128 * (128 + 128) + 2 * 4 * 128;
  EXPECT_EQ(CountParameters(*LstmClassifier()),
            kFirst + kSecond + 128 * 10 + 10);
}

TEST(LstmClassifierTest, LogitsDependOnEveryStep) {
  torch::manual_seed(1);
  LstmClassifier model(
      LstmClassifierOptions{.features = 3, .hidden = 8, .classes = 4});
  const torch::Tensor sequences = torch::randn({2, 5, 3});
  const torch::Tensor logits = model(sequences);
  EXPECT_EQ(logits.sizes(), (std::vector<int64_t>{2, 4}));
  for (int64_t step = 0; step < 5; ++step) {
    torch::Tensor changed = sequences.clone();
    changed.select(1, step).add_(1.0);
    EXPECT_FALSE(model(changed).equal(logits)) << step;
  }
}

TEST(LstmClassifierTest, EveryParameterGetsAFiniteGradient) {
  LstmClassifier model;
  model(torch::randn({2, 4, 28})).sum().backward();
  ExpectFiniteGradients(*model);
}

TEST(WordLanguageModelTest, HasTheNumberOfParametersThatItsSizesGive) {
  constexpr int64_t kLayer = 4 * 200 * (200 + 200) + 2 * 4 * 200;
  EXPECT_EQ(CountParameters(*WordLanguageModel()),
            10'000 * 200 + 2 * kLayer + 200 * 10'000 + 10'000);
}

TEST(WordLanguageModelTest, LogitsDependOnEarlierWordsOnly) {
  torch::manual_seed(1);
  WordLanguageModel model(
      WordLanguageModelOptions{.vocabulary = 9, .units = 6});
  model->eval();
  const torch::Tensor before = model(torch::tensor({{1, 2, 3, 4}}));
  const torch::Tensor after = model(torch::tensor({{1, 2, 8, 4}}));
  EXPECT_EQ(before.sizes(), (std::vector<int64_t>{1, 4, 9}));
  EXPECT_TRUE(after.narrow(1, 0, 2).equal(before.narrow(1, 0, 2)));
  EXPECT_FALSE(after.select(1, 2).equal(before.select(1, 2)));
  EXPECT_FALSE(after.select(1, 3).equal(before.select(1, 3)));
}

TEST(WordLanguageModelTest, EveryParameterGetsAFiniteGradient) {
  WordLanguageModel model(
      WordLanguageModelOptions{.vocabulary = 9, .units = 6});
  model(torch::tensor({{1, 2, 3, 4}})).sum().backward();
  ExpectFiniteGradients(*model);
}

TEST(WordLanguageModelTest, IsOfGatedUnitsInstead) {
  torch::manual_seed(1);
  WordLanguageModel model(
      WordLanguageModelOptions{.vocabulary = 9, .units = 6, .gru = true});
  constexpr int64_t kLayer = 3 * 6 * (6 + 6) + 2 * 3 * 6;
  EXPECT_EQ(CountParameters(*model), 9 * 6 + 2 * kLayer + 6 * 9 + 9);
  const torch::Tensor logits = model(torch::tensor({{1, 2, 3, 4}}));
  EXPECT_EQ(logits.sizes(), (std::vector<int64_t>{1, 4, 9}));
  logits.sum().backward();
  ExpectFiniteGradients(*model);
}

TEST(WavePredictorTest, HasTheNumberOfParametersThatItsSizesGive) {
  EXPECT_EQ(CountParameters(*WavePredictor()),
            4 * 51 * (1 + 51) + 8 * 51 + 4 * 51 * (51 + 51) + 8 * 51 + 51 + 1);
}

TEST(WavePredictorTest, PredictsFromEarlierValuesOnly) {
  torch::manual_seed(1);
  WavePredictor model(WavePredictorOptions{.hidden = 5});
  const torch::Tensor waves = torch::randn({2, 6});
  const torch::Tensor before = model(waves);
  EXPECT_EQ(before.sizes(), (std::vector<int64_t>{2, 6}));
  torch::Tensor changed = waves.clone();
  changed.select(1, 3).add_(1);
  const torch::Tensor after = model(changed);
  EXPECT_TRUE(after.narrow(1, 0, 3).equal(before.narrow(1, 0, 3)));
  for (int64_t step = 3; step < 6; ++step) {
    EXPECT_FALSE(after.select(1, step).equal(before.select(1, step))) << step;
  }
  before.sum().backward();
  ExpectFiniteGradients(*model);
}

TEST(NeuralCollaborativeFilteringTest,
     HasTheNumberOfParametersThatItsSizesGive) {
  EXPECT_EQ(CountParameters(*NeuralCollaborativeFiltering()),
            (6040 + 3706) * (8 + 32) +  // embeddings
                64 * 32 + 32 + 32 * 16 + 16 + 16 * 8 + 8 + (8 + 8) + 1);
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

TEST(NeuralCollaborativeFilteringTest, EveryParameterGetsAFiniteGradient) {
  NeuralCollaborativeFiltering model(
      NeuralCollaborativeFilteringOptions{.users = 3, .items = 5});
  model(torch::tensor({0, 2}), torch::tensor({4, 1})).sum().backward();
  ExpectFiniteGradients(*model);
}

}  // namespace
}  // namespace hvdlite::trainers
