#include "trainers/operator_profile.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <torch/torch.h>

#include <algorithm>

namespace hvdlite::trainers {
namespace {

using ::testing::HasSubstr;

TEST(OperatorProfileTest, CountsOperatorsOfForwardAndBackward) {
  const torch::Tensor weight = torch::ones({4, 4}, torch::requires_grad());
  std::vector<OperatorTime> hottest;
  {
    const OperatorProfile profile;
    for (int i = 0; i < 3; ++i) {
      torch::matmul(torch::ones({4, 4}), weight).sum().backward();
    }
    hottest = profile.Hottest(1000);
  }
  const auto calls_of = [&](const std::string& name) {
    const auto found =
        std::find_if(hottest.begin(), hottest.end(),
                     [&](const OperatorTime& one) { return one.name == name; });
    return found == hottest.end() ? 0 : found->calls;
  };
  EXPECT_EQ(calls_of("aten::matmul"), 3);
  EXPECT_GE(calls_of("aten::mm"), 6);  // each backward pass adds one
  for (const OperatorTime& one : hottest) {
    EXPECT_LE(one.self_seconds, one.seconds + 1e-9) << one.name;
  }
  EXPECT_TRUE(std::is_sorted(hottest.begin(), hottest.end(),
                             [](const auto& a, const auto& b) {
                               return a.self_seconds > b.self_seconds;
                             }));
}

TEST(OperatorProfileTest, CountsDuringItsLifetimeFromZero) {
  {
    const OperatorProfile profile;
    torch::ones({2}).exp();
  }
  torch::ones({2}).exp();
  const OperatorProfile profile;
  EXPECT_TRUE(profile.Hottest(10).empty());
  torch::ones({2}).exp();
  EXPECT_EQ(profile.Hottest(1).size(), 1U);
}

TEST(OperatorProfileTest, TableHasALinePerOperator) {
  const std::string table =
      FormatOperators({{"aten::mm", 12, 2.5, 1.25}, {"aten::add", 3, 1, 1}});
  EXPECT_THAT(table, HasSubstr("operator"));
  EXPECT_THAT(table, ::testing::ContainsRegex(
                         "\naten::mm +12 +1\\.250 +2\\.500\naten::add +3 "));
}

}  // namespace
}  // namespace hvdlite::trainers
