#include "trainers/models/transformer.h"

#include <gtest/gtest.h>
#include <torch/optim/adam.h>

#include <vector>

namespace hvdlite::trainers {
namespace {

namespace F = torch::nn::functional;

TransformerOptions SmallTransformer(double dropout) {
  return {.max_length = 12,
          .layer = {.d_model = 16,
                    .d_inner = 24,
                    .heads = 2,
                    .d_k = 8,
                    .d_v = 8,
                    .dropout = dropout,
                    .attention_dropout = dropout}};
}

Transformer EvaluatingTransformer() {
  torch::manual_seed(1);
  Transformer model(SmallTransformer(/*dropout=*/0.5));
  model->eval();
  return model;
}

// 1, 2, 3 ... at tokens, 0 at padding.
torch::Tensor Positions(const torch::Tensor& tokens) {
  const torch::Tensor real = tokens.ne(kPaddingToken);
  return real.cumsum(1) * real;
}

torch::Tensor Logits(Transformer& model, const torch::Tensor& source,
                     const torch::Tensor& target) {
  return model(source, Positions(source), target, Positions(target));
}

// Two pairs, the second shorter.
const torch::Tensor& Source() {
  static const torch::Tensor tokens =
      torch::tensor({{2, 4, 5, 6, 7, 3}, {2, 9, 24, 3, 0, 0}});
  return tokens;
}
const torch::Tensor& Target() {
  static const torch::Tensor tokens =
      torch::tensor({{2, 4, 5, 4, 5, 3}, {2, 11, 6, 3, 0, 0}});
  return tokens;
}

torch::Tensor Loss(Transformer& model) {
  const torch::Tensor logits =
      Logits(model, Source(), Target().narrow(1, 0, 5));
  return F::cross_entropy(
      logits.flatten(0, 1), Target().narrow(1, 1, 5).flatten(),
      F::CrossEntropyFuncOptions().ignore_index(kPaddingToken));
}

TEST(TransformerTest, AcceptsTheLongestSequence) {
  Transformer model = EvaluatingTransformer();
  const torch::Tensor tokens = torch::full({1, 12}, 4, torch::kLong);
  EXPECT_EQ(Logits(model, tokens, tokens).size(1), 12);
}

TEST(TransformerTest, PositionBeyondTheMaximumIsAnError) {
  Transformer model = EvaluatingTransformer();
  const torch::Tensor tokens = torch::full({1, 13}, 4, torch::kLong);
  EXPECT_THROW(Logits(model, tokens, tokens), c10::Error);
}

TEST(TransformerTest, TokenOutsideTheVocabularyIsAnError) {
  Transformer model = EvaluatingTransformer();
  EXPECT_THROW(Logits(model, torch::tensor({{25}}), Target()), c10::Error);
}

TEST(TransformerTest, PaddingDoesNotChangeTheLogitsOfTokens) {
  Transformer model = EvaluatingTransformer();
  const torch::Tensor together = Logits(model, Source(), Target());
  const torch::Tensor alone =
      Logits(model, Source().narrow(0, 1, 1).narrow(1, 0, 4),
             Target().narrow(0, 1, 1).narrow(1, 0, 4));
  EXPECT_TRUE(torch::allclose(together.narrow(0, 1, 1).narrow(1, 0, 4), alone,
                              1e-5, 1e-6));
}

TEST(TransformerTest, LogitsAreZeroAtPadding) {
  Transformer model = EvaluatingTransformer();
  const torch::Tensor logits = Logits(model, Source(), Target());
  EXPECT_TRUE(logits[1].narrow(0, 4, 2).eq(0).all().item<bool>());
  EXPECT_TRUE(logits[1].narrow(0, 0, 4).ne(0).any(1).all().item<bool>());
}

TEST(TransformerTest, LogitsDependOnlyOnEarlierTargetTokens) {
  Transformer model = EvaluatingTransformer();
  const torch::Tensor before = Logits(model, Source(), Target())[0];
  torch::Tensor changed = Target().clone();
  changed[0][3] = 10;
  const torch::Tensor after = Logits(model, Source(), changed)[0];
  EXPECT_TRUE(after.narrow(0, 0, 3).equal(before.narrow(0, 0, 3)));
  EXPECT_FALSE(torch::allclose(after.narrow(0, 3, 3), before.narrow(0, 3, 3)));
}

TEST(TransformerTest, LogitsDependOnTheWholeSource) {
  Transformer model = EvaluatingTransformer();
  const torch::Tensor before = Logits(model, Source(), Target())[0];
  for (int64_t position = 0; position < 6; ++position) {
    torch::Tensor changed = Source().clone();
    changed[0][position] = 20;
    const torch::Tensor after = Logits(model, changed, Target())[0];
    EXPECT_FALSE(torch::allclose(after[0], before[0])) << position;
  }
}

TEST(TransformerTest, OrderOfTheSourceMatters) {
  Transformer model = EvaluatingTransformer();
  const torch::Tensor target = torch::tensor({{2, 4}});
  EXPECT_FALSE(
      torch::allclose(Logits(model, torch::tensor({{2, 4, 5, 3}}), target),
                      Logits(model, torch::tensor({{2, 5, 4, 3}}), target)));
}

TEST(TransformerTest, EvaluationIsDeterministicAndTrainingIsNot) {
  Transformer model = EvaluatingTransformer();
  EXPECT_TRUE(Logits(model, Source(), Target())
                  .equal(Logits(model, Source(), Target())));
  model->train();
  EXPECT_FALSE(Logits(model, Source(), Target())
                   .equal(Logits(model, Source(), Target())));
}

TEST(TransformerTest, OverfitsOneBatch) {
  torch::manual_seed(1);
  Transformer model(SmallTransformer(/*dropout=*/0.0));
  torch::optim::Adam optimizer(model->parameters(), 0.01);
  const double first = Loss(model).item<double>();
  for (int step = 0; step < 30; ++step) {
    optimizer.zero_grad();
    Loss(model).backward();
    optimizer.step();
  }
  EXPECT_LT(Loss(model).item<double>(), 0.1 * first);
}

}  // namespace
}  // namespace hvdlite::trainers
