#include <gtest/gtest.h>
#include <torch/torch.h>

#include <cmath>

#include "trainers/step.h"

namespace hvdlite::trainers {
namespace {

// Two sequences of two tokens; the last one is padding.
torch::Tensor Logits() {
  return torch::tensor({2.0, 0.0, 0.0,  //
                        0.0, 1.0, 0.0,  //
                        0.0, 0.0, 3.0,  //
                        5.0, 0.0, 0.0})
      .reshape({2, 2, 3});
}
torch::Tensor Expected() {
  return torch::tensor({1, 1, 2, 0}, torch::kInt64).reshape({2, 2});
}

double NegativeLog(double logit, double others) {
  return -std::log(std::exp(logit) / (std::exp(logit) + others));
}

TEST(SequenceLossTest, SumsOverTheTokensThatCount) {
  const SequenceLoss loss = ComputeSequenceLoss(Logits(), Expected(), 0, 0);
  EXPECT_EQ(loss.tokens, 3);
  EXPECT_EQ(loss.correct, 2);
  EXPECT_NEAR(
      loss.sum.item<double>(),
      NegativeLog(0, std::exp(2) + 1) + NegativeLog(1, 2) + NegativeLog(3, 2),
      1e-5);
}

TEST(SequenceLossTest, SmoothingSharesProbabilityAmongTheOtherTokens) {
  const torch::Tensor logits =
      torch::tensor({2.0, 0.0, 1.0}).reshape({1, 1, 3});
  const torch::Tensor expected =
      torch::tensor({0}, torch::kInt64).reshape({1, 1});
  const double log_sum = std::log(std::exp(2) + 1 + std::exp(1));
  const SequenceLoss loss = ComputeSequenceLoss(logits, expected, -1, 0.2);
  EXPECT_NEAR(loss.sum.item<double>(),
              0.8 * (log_sum - 2) + 0.1 * log_sum + 0.1 * (log_sum - 1), 1e-5);
}

TEST(SequenceLossTest, TinySmoothingEqualsNoSmoothing) {
  EXPECT_NEAR(
      ComputeSequenceLoss(Logits(), Expected(), 0, 1e-9).sum.item<double>(),
      ComputeSequenceLoss(Logits(), Expected(), 0, 0).sum.item<double>(), 1e-5);
}

TEST(SequenceLossTest, PaddingHasNoGradient) {
  for (const double smoothing : {0.0, 0.1}) {
    const torch::Tensor logits = Logits().requires_grad_();
    ComputeSequenceLoss(logits, Expected(), 0, smoothing).sum.backward();
    EXPECT_EQ(logits.grad()[1][1].abs().sum().item<double>(), 0);
    EXPECT_GT(logits.grad()[1][0].abs().sum().item<double>(), 0);
  }
}

}  // namespace
}  // namespace hvdlite::trainers
