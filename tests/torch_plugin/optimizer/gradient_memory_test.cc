// Gradients that share their memory with other tensors, on any number of ranks.
#include <gtest/gtest.h>
#include <hvdlite/hvdlite.h>
#include <torch/torch.h>

#include "tests/torch_plugin/small_net.h"

namespace hvdlite {
namespace {

using Options = DistributedOptimizerOptions;

TEST(GradientMemoryTest, GradientsThatShareMemoryAreReducedOnce) {
  torch::Tensor late = torch::ones({5}).requires_grad_();
  torch::Tensor early = torch::ones({5}).requires_grad_();
  DistributedOptimizer optimizer = DistributeSgd(
      {{"late", late}, {"early", early}}, Options().op(ReduceOp::Sum));
  const torch::Tensor row = late.unsqueeze(0);
  row.register_hook([&](const torch::Tensor&) {
    EXPECT_TRUE(early.grad().defined());
    WaitForOthers(ReduceOp::Sum);
  });
  ((row + early.unsqueeze(0)) * 1.0).sum().backward();
  ASSERT_EQ(late.grad().data_ptr(), early.grad().data_ptr());
  optimizer.synchronize();
  EXPECT_TRUE(AllEqual(late.grad(), size()));
  EXPECT_TRUE(AllEqual(early.grad(), size()));
}

// The bias's gradient is a view of the sum's gradient. backward() computes the
// weight's gradient from the latter after the bias's has been reduced.
TEST(GradientMemoryTest, GradientThatBackwardStillReadsIsNotChanged) {
  torch::Tensor weight = torch::ones({1, 5}).requires_grad_();
  torch::Tensor bias = torch::zeros({5}).requires_grad_();
  DistributedOptimizer optimizer = DistributeSgd(
      {{"weight", weight}, {"bias", bias}}, Options().op(ReduceOp::Average));
  const double factor = rank() + 1;
  const torch::Tensor product = weight * factor;
  product.register_hook([&](const torch::Tensor&) {
    EXPECT_TRUE(bias.grad().defined());
    WaitForOthers(ReduceOp::Average);
  });
  ((product + bias.unsqueeze(0)) * factor).sum().backward();
  optimizer.synchronize();
  double sum = 0;
  double sum_of_squares = 0;
  for (int i = 1; i <= size(); ++i) {
    sum += i;
    sum_of_squares += i * i;
  }
  EXPECT_TRUE(torch::allclose(bias.grad(), torch::full({5}, sum / size())));
  EXPECT_TRUE(torch::allclose(weight.grad(),
                              torch::full({1, 5}, sum_of_squares / size())));
}

TEST(GradientMemoryTest, GradientsStayViewsOfABuffer) {
  torch::Tensor one = torch::ones({2, 3}).requires_grad_();
  torch::Tensor two = torch::ones({4}).requires_grad_();
  const torch::Tensor buffer = torch::zeros({10});
  one.mutable_grad() = buffer.slice(0, 0, 6).view({2, 3});
  two.mutable_grad() = buffer.slice(0, 6, 10);
  DistributedOptimizer optimizer =
      DistributeSgd({{"one", one}, {"two", two}}, Options().op(ReduceOp::Sum));
  for (int step = 0; step < 2; ++step) {
    ((one.sum() + two.sum() * 2) * (rank() + 1)).backward();
    optimizer.synchronize();
    EXPECT_TRUE(AllEqual(buffer.slice(0, 0, 6), SumOfRanks()));
    EXPECT_TRUE(AllEqual(buffer.slice(0, 6, 10), 2 * SumOfRanks()));
    optimizer.zero_grad(/*set_to_none=*/false);
  }
}

// The gradient shares its memory, so it is copied back at the end.
TEST(GradientMemoryTest, StepAfterAFailedDeliveryIsComplete) {
  torch::Tensor one = torch::ones({4}).requires_grad_();
  torch::Tensor two = torch::ones({4}).requires_grad_();
  const torch::Tensor buffer = torch::zeros({10});
  DistributedOptimizer optimizer =
      DistributeSgd({{"one", one}, {"two", two}}, Options().op(ReduceOp::Sum));
  one.mutable_grad() = buffer.slice(0, 0, 4);
  const auto backward = [&] {
    ((one.sum() + two.sum() * 2) * (rank() + 1)).backward();
  };
  backward();
  one.mutable_grad().resize_({2});
  EXPECT_THROW(optimizer.synchronize(), c10::Error);
  for (int step = 0; step < 2; ++step) {
    optimizer.zero_grad();
    backward();
    optimizer.synchronize();
    EXPECT_TRUE(AllEqual(one.grad(), SumOfRanks()));
    EXPECT_TRUE(AllEqual(two.grad(), 2 * SumOfRanks()));
  }
}

}  // namespace
}  // namespace hvdlite
