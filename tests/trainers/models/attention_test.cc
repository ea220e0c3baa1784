#include <gtest/gtest.h>

#include <cmath>
#include <string>
#include <vector>

#include "trainers/models/layers.h"

namespace hvdlite::trainers {
namespace {

MultiHeadAttention SmallAttention() {
  return MultiHeadAttention(MultiHeadAttentionOptions{
      .d_model = 6, .heads = 2, .d_k = 4, .d_v = 5, .dropout = 0.0});
}

torch::Tensor NothingHidden() {
  return torch::zeros({1, 1, 1, 1}, torch::kBool);
}

torch::Tensor Project(const torch::Tensor& input, MultiHeadAttention& model,
                      const std::string& name) {
  const auto parameters = model->named_parameters();
  return torch::linear(input, parameters[name + ".weight"],
                       parameters[name + ".bias"]);
}

TEST(AttentionTest, EqualsTheFormulaHeadByHead) {
  torch::manual_seed(1);
  MultiHeadAttention attention = SmallAttention();
  const torch::Tensor queries = torch::randn({3, 2, 6});
  const torch::Tensor memory = torch::randn({3, 7, 6});
  const torch::Tensor query = Project(queries, attention, "query");
  const torch::Tensor key = Project(memory, attention, "key");
  const torch::Tensor value = Project(memory, attention, "value");
  std::vector<torch::Tensor> heads;
  for (int64_t head = 0; head < 2; ++head) {
    const torch::Tensor scores =
        query.narrow(2, head * 4, 4)
            .bmm(key.narrow(2, head * 4, 4).transpose(1, 2)) /
        2.0;  // the square root of d_k
    heads.push_back(scores.softmax(-1).bmm(value.narrow(2, head * 5, 5)));
  }
  const torch::Tensor expected =
      Project(torch::cat(heads, 2), attention, "output");
  EXPECT_TRUE(torch::allclose(attention(queries, memory, NothingHidden()),
                              expected, 1e-5, 1e-6));
}

TEST(AttentionTest, HiddenKeysHaveNoInfluence) {
  torch::manual_seed(1);
  MultiHeadAttention attention = SmallAttention();
  const torch::Tensor queries = torch::randn({1, 2, 6});
  const torch::Tensor memory = torch::randn({1, 5, 6});
  const torch::Tensor hidden =
      PaddingMask(torch::tensor({{7, 7, 7, 0, 0}}), /*padding_token=*/0);
  EXPECT_TRUE(torch::allclose(
      attention(queries, memory, hidden),
      attention(queries, memory.narrow(1, 0, 3), NothingHidden()), 1e-5, 1e-6));
}

TEST(AttentionTest, QueryWithAllKeysHiddenGetsTheMean) {
  torch::manual_seed(1);
  MultiHeadAttention attention = SmallAttention();
  const torch::Tensor memory = torch::randn({1, 5, 6});
  const torch::Tensor found = attention(
      torch::randn({1, 1, 6}), memory, torch::ones({1, 1, 1, 5}, torch::kBool));
  const torch::Tensor mean =
      Project(memory, attention, "value").mean(1, /*keepdim=*/true);
  EXPECT_TRUE(
      torch::allclose(found, Project(mean, attention, "output"), 1e-5, 1e-6));
}

TEST(AttentionTest, InitialProjectionsHaveGlorotsVariance) {
  torch::manual_seed(1);
  MultiHeadAttention attention(MultiHeadAttentionOptions{
      .d_model = 256, .heads = 8, .d_k = 64, .d_v = 32});
  const auto parameters = attention->named_parameters();
  const auto deviation = [&](const std::string& name) {
    return parameters[name].std().item<double>();
  };
  EXPECT_NEAR(deviation("query.weight"), std::sqrt(2.0 / 320), 0.001);
  EXPECT_NEAR(deviation("key.weight"), std::sqrt(2.0 / 320), 0.001);
  EXPECT_NEAR(deviation("value.weight"), std::sqrt(2.0 / 288), 0.001);
  EXPECT_NEAR(deviation("output.weight"), std::sqrt(2.0 / 512), 0.001);
}

TEST(AttentionTest, PaddingMaskIsTrueAtPadding) {
  const torch::Tensor tokens = torch::tensor({{5, 6, 9}, {5, 9, 9}});
  EXPECT_TRUE(PaddingMask(tokens, /*padding_token=*/9)
                  .equal(torch::tensor(
                      {{{{false, false, true}}}, {{{false, true, true}}}})));
}

TEST(AttentionTest, SubsequentMaskIsTrueAboveTheDiagonal) {
  EXPECT_TRUE(SubsequentMask(3, torch::kCPU)
                  .equal(torch::tensor({{{{false, true, true},
                                          {false, false, true},
                                          {false, false, false}}}})));
}

TEST(PositionsTest, SinusoidsFollowTheFormula) {
  const torch::Tensor table = SinusoidTable(/*max_length=*/3, /*width=*/4);
  const torch::Tensor expected = torch::tensor({
      {0.0, 0.0, 0.0, 0.0},  // padding
      {0.84147098, 0.54030231, 0.00999983, 0.99995000},
      {0.90929743, -0.41614684, 0.01999867, 0.99980001},
      {0.14112001, -0.98999250, 0.02999550, 0.99955003},
  });
  EXPECT_TRUE(torch::allclose(table, expected.to(torch::kFloat), 0.0, 1e-7));
}

TEST(PositionsTest, TableHasARowPerPositionAndOneForPadding) {
  EXPECT_EQ(SinusoidTable(702, 256).sizes(), (std::vector<int64_t>{703, 256}));
}

}  // namespace
}  // namespace hvdlite::trainers
