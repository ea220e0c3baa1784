// Tests of the networks that choose actions.
#include "trainers/models/policies.h"

#include <gtest/gtest.h>

#include <vector>

#include "tests/trainers/models/model_testing.h"

namespace hvdlite::trainers {
namespace {

void ExpectProbabilities(const torch::Tensor& log_probabilities) {
  EXPECT_TRUE(log_probabilities.exp().sum(1).allclose(
      torch::ones({log_probabilities.size(0)})));
}

TEST(CartPolePolicyTest, MakesProbabilitiesOfTwoActions) {
  torch::manual_seed(1);
  CartPolePolicy policy;
  EXPECT_EQ(CountParameters(*policy), 4 * 128 + 128 + 128 * 2 + 2);
  const torch::Tensor output = policy(torch::randn({3, 4}));
  EXPECT_EQ(output.sizes(), (std::vector<int64_t>{3, 2}));
  ExpectProbabilities(output);
  output.select(1, 0).sum().backward();
  ExpectFiniteGradients(*policy);
}

TEST(FramePolicyTest, HasTheNumberOfParametersThatItsSizesGive) {
  EXPECT_EQ(CountParameters(*FramePolicy()),
            4 * 32 * 64 + 32 + 32 * 64 * 16 + 64 + 64 * 32 * 9 + 32 +
                32 * 49 * 512 + 512 + 512 * 6 + 6 + 512 + 1);
}

TEST(FramePolicyTest, MakesProbabilitiesAndValuesOfBytes) {
  torch::manual_seed(1);
  FramePolicy policy;
  const torch::Tensor frames =
      torch::randint(256, {2, kFrameStack, kFrameSide, kFrameSide})
          .to(torch::kUInt8);
  const PolicyOutput output = policy(frames);
  EXPECT_EQ(output.log_probabilities.sizes(), (std::vector<int64_t>{2, 6}));
  EXPECT_EQ(output.values.sizes(), (std::vector<int64_t>{2}));
  ExpectProbabilities(output.log_probabilities);
  (output.values.sum() + output.log_probabilities.select(1, 0).sum())
      .backward();
  ExpectFiniteGradients(*policy);
}

}  // namespace
}  // namespace hvdlite::trainers
