#include <gtest/gtest.h>
#include <torch/torch.h>

#include <cmath>
#include <stdexcept>
#include <vector>

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

TEST(SampleDropoutTest, DropsTheRequestedShareAndKeepsTheExpectation) {
  torch::manual_seed(1);
  for (const double share : {0.1, 0.5, 0.75}) {
    const torch::Tensor out = SampleDropout(share)(torch::ones({kMany}));
    EXPECT_NEAR(ShareOfZeros(out), share, Tolerance(share));
    const double scale = 1 / (1 - share);
    EXPECT_NEAR(out.max().item<double>(), scale, 1e-4);
    EXPECT_NEAR(out.mean().item<double>(), 1, scale * Tolerance(share));
  }
}

TEST(SampleDropoutTest, ValuesOfOneDrawAreIndependent) {
  torch::manual_seed(2);
  const torch::Tensor dropped =
      SampleDropout(0.5)(torch::ones({kMany})).eq(0).to(torch::kFloat64);
  for (int64_t distance = 1; distance <= 4; ++distance) {
    const double both = (dropped.narrow(0, 0, kMany - distance) *
                         dropped.narrow(0, distance, kMany - distance))
                            .mean()
                            .item<double>();
    EXPECT_NEAR(both, 0.25, Tolerance(0.25)) << distance << " apart";
  }
}

TEST(SampleDropoutTest, EveryPositionOfADrawIsDroppedEquallyOften) {
  torch::manual_seed(3);
  const torch::Tensor dropped =
      SampleDropout(0.25)(torch::ones({kMany / 4, 4})).eq(0);
  const torch::Tensor shares = dropped.to(torch::kFloat64).mean(0);
  for (int64_t place = 0; place < 4; ++place) {
    EXPECT_NEAR(shares[place].item<double>(), 0.25, 2 * Tolerance(0.25));
  }
}

TEST(SampleDropoutTest, KeepsShapeAndTypeOfAnyInput) {
  SampleDropout dropout(0.5);
  for (const int64_t count : {0, 1, 3, 4, 5}) {
    EXPECT_EQ(dropout(torch::ones({count})).numel(), count);
  }
  const torch::Tensor transposed = torch::ones({3, 7}).t();
  EXPECT_EQ(dropout(transposed).sizes(), transposed.sizes());
  EXPECT_EQ(dropout(torch::ones({8}, torch::kBFloat16)).scalar_type(),
            torch::kBFloat16);
}

TEST(SampleDropoutTest, GradientsAreDroppedWhereValuesAre) {
  torch::manual_seed(4);
  const torch::Tensor input = torch::ones({1000}).requires_grad_();
  const torch::Tensor out = SampleDropout(0.5)(input);
  out.sum().backward();
  EXPECT_TRUE(input.grad().equal(out.detach()));
  EXPECT_GT(ShareOfZeros(input.grad()), 0);
}

TEST(SampleDropoutTest, ResultDependsOnTheSeed) {
  SampleDropout dropout(0.5);
  const auto draw = [&](uint64_t seed) {
    torch::manual_seed(seed);
    return dropout(torch::ones({1000}));
  };
  EXPECT_TRUE(draw(5).equal(draw(5)));
  EXPECT_FALSE(draw(5).equal(draw(6)));
}

TEST(SampleDropoutTest, ChangesNothingInEvaluationOrWithProbabilityZero) {
  const torch::Tensor input = torch::ones({1000});
  SampleDropout dropout(0.5);
  dropout->eval();
  EXPECT_TRUE(dropout(input).equal(input));
  dropout->train();
  SetDropout(*dropout, 0);
  EXPECT_TRUE(dropout(input).equal(input));
  SetDropout(*dropout, 0.5);
  EXPECT_FALSE(dropout(input).equal(input));
}

// The values that a model drops in `input`, whose rows are these samples.
torch::Tensor Dropped(SampleDropout& dropout, const torch::Tensor& input,
                      const std::vector<int64_t>& samples, int64_t step = 3) {
  SetDropoutSamples(*dropout, {.seed = 1, .step = step, .samples = samples});
  return dropout(input).eq(0);
}

TEST(SampleDropoutTest, SampleIsDroppedEquallyOnAnyRankAndInAnyBatch) {
  SampleDropout dropout(0.5);
  const torch::Tensor whole =
      Dropped(dropout, torch::ones({4, 3, 50}), {7, 2, 9, 4});
  const torch::Tensor part = Dropped(dropout, torch::ones({2, 3, 50}), {4, 2});
  EXPECT_TRUE(part[0].equal(whole[3]));
  EXPECT_TRUE(part[1].equal(whole[1]));
  EXPECT_FALSE(part[0].equal(whole[0]));
}

TEST(SampleDropoutTest, PaddingOfTheBatchChangesNothing) {
  SampleDropout dropout(0.5);
  const torch::Tensor padded =
      Dropped(dropout, torch::ones({1, 4, 23, 23}), {7});
  const torch::Tensor tight =
      Dropped(dropout, torch::ones({1, 4, 10, 10}), {7});
  EXPECT_TRUE(tight.equal(padded.narrow(2, 0, 10).narrow(3, 0, 10)));
}

TEST(SampleDropoutTest, StepsLayersAndCallsDropDifferently) {
  torch::nn::Sequential model(SampleDropout(0.5), SampleDropout(0.5));
  const torch::Tensor input = torch::ones({2, 500});
  auto* first = model->ptr<SampleDropoutImpl>(0).get();
  auto* second = model->ptr<SampleDropoutImpl>(1).get();
  SetDropoutSamples(*model, {.seed = 1, .step = 1, .samples = {0, 1}});
  const torch::Tensor once = first->forward(input);
  EXPECT_FALSE(second->forward(input).equal(once));
  EXPECT_FALSE(first->forward(input).equal(once));
  SetDropoutSamples(*model, {.seed = 1, .step = 2, .samples = {0, 1}});
  EXPECT_FALSE(first->forward(input).equal(once));
  SetDropoutSamples(*model, {.seed = 1, .step = 1, .samples = {0, 1}});
  EXPECT_TRUE(first->forward(input).equal(once));
}

TEST(SampleDropoutTest, PositionsOfASampleAreIndependent) {
  SampleDropout dropout(0.5);
  const torch::Tensor kept = Dropped(dropout, torch::ones({10, 10, 100, 100}),
                                     {0, 1, 2, 3, 4, 5, 6, 7, 8, 9})
                                 .to(torch::kFloat64);
  for (int64_t dimension = 0; dimension < 4; ++dimension) {
    const int64_t length = kept.size(dimension) - 1;
    const double both =
        (kept.narrow(dimension, 0, length) * kept.narrow(dimension, 1, length))
            .mean()
            .item<double>();
    EXPECT_NEAR(both, 0.25, 2 * Tolerance(0.25)) << dimension;
  }
}

TEST(SampleDropoutTest, WholeChannelsAreDropped) {
  SampleDropout dropout(0.5, SampleDropoutImpl::Unit::kChannel);
  const torch::Tensor dropped =
      Dropped(dropout, torch::ones({2, 100, 3, 5}), {5, 6})
          .to(torch::kFloat64)
          .mean({2, 3});
  EXPECT_TRUE(dropped.eq(0).logical_or(dropped.eq(1)).all().item<bool>());
  EXPECT_NEAR(dropped.mean().item<double>(), 0.5, 0.2);
}

TEST(SampleDropoutTest, OtherNumberOfSamplesIsAnError) {
  SampleDropout dropout(0.5);
  EXPECT_THROW(Dropped(dropout, torch::ones({3, 2}), {0, 1}),
               std::invalid_argument);
}

TEST(SampleDropoutTest, InvalidProbabilityIsAnError) {
  EXPECT_THROW(SampleDropout(-0.1), std::invalid_argument);
  EXPECT_THROW(SampleDropout(1.0), std::invalid_argument);
  EXPECT_THROW(SampleDropout(std::nan("")), std::invalid_argument);
}

}  // namespace
}  // namespace hvdlite::trainers
