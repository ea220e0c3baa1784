// Tests of the recurrent translator.
#include "trainers/models/translator.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <stdexcept>
#include <vector>

namespace hvdlite::trainers {
namespace {

using ::testing::HasSubstr;
using ::testing::ThrowsMessage;

const TranslatorOptions kSmall = {.vocabulary = 11, .units = 6, .layers = 3};

TEST(TranslatorTest, LogitsDependOnWholeSourceAndEarlierTargets) {
  torch::manual_seed(1);
  Translator model(kSmall);
  model->eval();
  const torch::Tensor source = torch::tensor({{1, 2, 3, 4, 5}});
  const torch::Tensor target = torch::tensor({{6, 7, 8}});
  const torch::Tensor before = model(source, target);
  const torch::Tensor other_target = model(source, torch::tensor({{6, 7, 9}}));
  EXPECT_TRUE(other_target.narrow(1, 0, 2).equal(before.narrow(1, 0, 2)));
  EXPECT_FALSE(other_target.select(1, 2).equal(before.select(1, 2)));

  for (int64_t i = 0; i < 5; ++i) {
    torch::Tensor changed = source.clone();
    changed[0][i] = 10;
    EXPECT_FALSE(model(changed, target).select(1, 0).equal(before.select(1, 0)))
        << i;
  }
}

TEST(TranslatorTest, OneLayerIsAnError) {
  EXPECT_THAT(
      [] { Translator(TranslatorOptions{.layers = 1}); },
      ThrowsMessage<std::invalid_argument>(HasSubstr("at least two layers")));
}

TEST(AdditiveAttentionTest, ReturnsAMeanOfTheMemory) {
  torch::manual_seed(1);
  AdditiveAttention attention(4);
  const torch::Tensor same = torch::ones({2, 3, 4});
  EXPECT_TRUE(attention(torch::randn({2, 5, 4}), same)
                  .allclose(torch::ones({2, 5, 4})));
  const torch::Tensor memory = torch::randn({2, 3, 4});
  const torch::Tensor found = attention(torch::randn({2, 5, 4}), memory);
  EXPECT_TRUE(found.le(memory.amax(1, true)).all().item<bool>());
  EXPECT_TRUE(found.ge(memory.amin(1, true)).all().item<bool>());
}

}  // namespace
}  // namespace hvdlite::trainers
