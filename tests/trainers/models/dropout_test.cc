#include <gtest/gtest.h>
#include <torch/torch.h>

#include <cmath>
#include <stdexcept>

#include "trainers/models/layers.h"

namespace hvdlite::trainers {
namespace {

constexpr int64_t kMany = 1'000'000;

double ShareOfZeros(const torch::Tensor& values) {
  return values.eq(0).to(torch::kFloat64).mean().item<double>();
}

// Five standard deviations of a share of kMany draws.
double Tolerance(double share) {
  return 5 * std::sqrt(share * (1 - share) / kMany);
}

TEST(PackedDropoutTest, DropsItsShareAndKeepsTheExpectation) {
  torch::manual_seed(1);
  for (const double share : {0.1, 0.5, 0.75}) {
    const torch::Tensor out = PackedDropout(share)(torch::ones({kMany}));
    EXPECT_NEAR(ShareOfZeros(out), share, Tolerance(share));
    const double scale = 1 / (1 - share);
    EXPECT_NEAR(out.max().item<double>(), scale, 1e-4);
    EXPECT_NEAR(out.mean().item<double>(), 1, scale * Tolerance(share));
  }
}

TEST(PackedDropoutTest, ValuesOfOneDrawAreIndependent) {
  torch::manual_seed(2);
  const torch::Tensor dropped =
      PackedDropout(0.5)(torch::ones({kMany})).eq(0).to(torch::kFloat64);
  for (int64_t distance = 1; distance <= 4; ++distance) {
    const double both = (dropped.narrow(0, 0, kMany - distance) *
                         dropped.narrow(0, distance, kMany - distance))
                            .mean()
                            .item<double>();
    EXPECT_NEAR(both, 0.25, Tolerance(0.25)) << distance << " apart";
  }
}

TEST(PackedDropoutTest, EveryPlaceOfADrawIsDroppedAsOften) {
  torch::manual_seed(3);
  const torch::Tensor dropped =
      PackedDropout(0.25)(torch::ones({kMany / 4, 4})).eq(0);
  const torch::Tensor shares = dropped.to(torch::kFloat64).mean(0);
  for (int64_t place = 0; place < 4; ++place) {
    EXPECT_NEAR(shares[place].item<double>(), 0.25, 2 * Tolerance(0.25));
  }
}

TEST(PackedDropoutTest, KeepsShapeAndTypeOfAnyInput) {
  PackedDropout dropout(0.5);
  for (const int64_t count : {0, 1, 3, 4, 5}) {
    EXPECT_EQ(dropout(torch::ones({count})).numel(), count);
  }
  const torch::Tensor transposed = torch::ones({3, 7}).t();
  EXPECT_EQ(dropout(transposed).sizes(), transposed.sizes());
  EXPECT_EQ(dropout(torch::ones({8}, torch::kBFloat16)).scalar_type(),
            torch::kBFloat16);
}

TEST(PackedDropoutTest, GradientsAreDroppedWhereValuesAre) {
  torch::manual_seed(4);
  const torch::Tensor input = torch::ones({1000}).requires_grad_();
  const torch::Tensor out = PackedDropout(0.5)(input);
  out.sum().backward();
  EXPECT_TRUE(input.grad().equal(out.detach()));
  EXPECT_GT(ShareOfZeros(input.grad()), 0);
}

TEST(PackedDropoutTest, SeedDecides) {
  PackedDropout dropout(0.5);
  const auto draw = [&](uint64_t seed) {
    torch::manual_seed(seed);
    return dropout(torch::ones({1000}));
  };
  EXPECT_TRUE(draw(5).equal(draw(5)));
  EXPECT_FALSE(draw(5).equal(draw(6)));
}

TEST(PackedDropoutTest, ChangesNothingInEvaluationOrWithoutAShare) {
  const torch::Tensor input = torch::ones({1000});
  PackedDropout dropout(0.5);
  dropout->eval();
  EXPECT_TRUE(dropout(input).equal(input));
  dropout->train();
  SetDropout(*dropout, 0);
  EXPECT_TRUE(dropout(input).equal(input));
  SetDropout(*dropout, 0.5);
  EXPECT_FALSE(dropout(input).equal(input));
}

TEST(PackedDropoutTest, RefusesOtherShares) {
  EXPECT_THROW(PackedDropout(-0.1), std::invalid_argument);
  EXPECT_THROW(PackedDropout(1.0), std::invalid_argument);
  EXPECT_THROW(PackedDropout(std::nan("")), std::invalid_argument);
}

}  // namespace
}  // namespace hvdlite::trainers
