#include "trainers/models/language_model.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <torch/optim/adam.h>

#include <cmath>
#include <stdexcept>
#include <string>
#include <vector>

namespace hvdlite::trainers {
namespace {

using ::testing::AllOf;
using ::testing::HasSubstr;
using ::testing::ThrowsMessage;

namespace F = torch::nn::functional;

LanguageModelOptions SmallOptions(double dropout) {
  return {.vocabulary = 11,
          .layers = 2,
          .d_model = 16,
          .heads = 2,
          .d_inner = 32,
          .context = 8,
          .dropout = dropout};
}

LanguageModel EvaluatingModel() {
  torch::manual_seed(1);
  LanguageModel model(SmallOptions(/*dropout=*/0.5));
  model->eval();
  return model;
}

torch::Tensor Tokens() {
  return torch::tensor({{1, 2, 3, 4, 5, 6, 7, 8}, {8, 3, 8, 3, 9, 10, 0, 0}});
}

// The loss of predicting each token from those before it.
torch::Tensor Loss(LanguageModel& model) {
  const torch::Tensor logits = model(Tokens().narrow(1, 0, 7));
  return F::cross_entropy(logits.flatten(0, 1),
                          Tokens().narrow(1, 1, 7).flatten());
}

TEST(LanguageModelTest, LogitsDependOnlyOnEarlierTokens) {
  LanguageModel model = EvaluatingModel();
  const torch::Tensor before = model(Tokens())[0];
  torch::Tensor changed = Tokens();
  changed[0][5] = 9;
  const torch::Tensor after = model(changed)[0];
  EXPECT_TRUE(after.narrow(0, 0, 5).equal(before.narrow(0, 0, 5)));
  for (int64_t position = 5; position < 8; ++position) {
    EXPECT_FALSE(after[position].equal(before[position])) << position;
  }
}

TEST(LanguageModelTest, LogitsOfEqualTokensDependOnPosition) {
  LanguageModel model = EvaluatingModel();
  const torch::Tensor logits = model(torch::full({1, 4}, 5, torch::kLong))[0];
  EXPECT_FALSE(torch::allclose(logits[0], logits[3]));
}

TEST(LanguageModelTest, SequenceLongerThanTheContextIsAnError) {
  LanguageModel model = EvaluatingModel();
  EXPECT_THAT(
      [&] {
        model(torch::zeros({1, 9}, torch::kLong));
      },
      ThrowsMessage<std::invalid_argument>(
          AllOf(HasSubstr("9 tokens"), HasSubstr("context of 8"))));
}

TEST(LanguageModelTest, HeadsThatDoNotDivideTheWidthAreAnError) {
  EXPECT_THAT(
      [] { LanguageModel(LanguageModelOptions{.d_model = 16, .heads = 3}); },
      ThrowsMessage<std::invalid_argument>(
          AllOf(HasSubstr("3 heads"), HasSubstr("16"))));
}

TEST(LanguageModelTest, InitialWeightsAtEndsOfBranchesAreSmaller) {
  torch::manual_seed(1);
  const LanguageModel model(LanguageModelOptions{.layers = 2});
  const auto parameters = model->named_parameters();
  const auto deviation = [&](const std::string& name) {
    return parameters[name].std().item<double>();
  };
  EXPECT_NEAR(deviation("token_embedding.weight"), 0.02, 2e-4);
  EXPECT_NEAR(deviation("layer1.attention.query.weight"), 0.02, 2e-4);
  EXPECT_NEAR(deviation("layer1.feed_forward.0.weight"), 0.02, 2e-4);
  EXPECT_NEAR(deviation("layer1.attention.output.weight"), 0.01, 1e-4);
  EXPECT_NEAR(deviation("layer1.feed_forward.2.weight"), 0.01, 1e-4);
  EXPECT_TRUE(parameters["norm.weight"].eq(1).all().item<bool>());
  EXPECT_TRUE(
      parameters["layer0.feed_forward.0.bias"].eq(0).all().item<bool>());
}

TEST(LanguageModelTest, UntrainedModelPredictsUniformly) {
  LanguageModel model = EvaluatingModel();
  EXPECT_NEAR(Loss(model).item<double>(), std::log(11.0), 0.05);
}

TEST(LanguageModelTest, EvaluationIsDeterministicAndTrainingIsNot) {
  LanguageModel model = EvaluatingModel();
  EXPECT_TRUE(model(Tokens()).equal(model(Tokens())));
  model->train();
  EXPECT_FALSE(model(Tokens()).equal(model(Tokens())));
}

TEST(LanguageModelTest, OverfitsOneBatch) {
  torch::manual_seed(1);
  LanguageModel model(SmallOptions(/*dropout=*/0.0));
  torch::optim::Adam optimizer(model->parameters(), 0.01);
  const double first = Loss(model).item<double>();
  for (int step = 0; step < 60; ++step) {
    optimizer.zero_grad();
    Loss(model).backward();
    optimizer.step();
  }
  EXPECT_LT(Loss(model).item<double>(), 0.3 * first);
}

}  // namespace
}  // namespace hvdlite::trainers
