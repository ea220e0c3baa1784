// The places of gradients with gradient_as_fusion_view, on any number of ranks.
#include <gtest/gtest.h>
#include <hvdlite/hvdlite.h>
#include <torch/torch.h>

#include <cstdint>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "tests/torch_plugin/small_net.h"

namespace hvdlite {
namespace {

using Options = DistributedOptimizerOptions;
Options WithViews() { return Options().gradient_as_fusion_view(true); }

Parameters ParametersOf(std::vector<torch::Tensor> tensors) {
  Parameters parameters;
  for (torch::Tensor& tensor : tensors) {
    parameters.insert(std::to_string(parameters.size()), tensor);
  }
  return parameters;
}

uintptr_t AddressOf(const torch::Tensor& tensor) {
  return reinterpret_cast<uintptr_t>(tensor.data_ptr());
}

std::vector<uintptr_t> GradientAddresses(
    const std::vector<torch::Tensor>& parameters) {
  std::vector<uintptr_t> addresses;
  for (const torch::Tensor& parameter : parameters) {
    EXPECT_TRUE(parameter.grad().defined());
    addresses.push_back(AddressOf(parameter.grad()));
  }
  return addresses;
}

TEST(GradientViewTest, GradientsLieSideBySideFromTheLastParameterToTheFirst) {
  const std::vector<torch::Tensor> parameters = {
      torch::ones({3, 5}, torch::kDouble).requires_grad_(),
      torch::ones({16}).requires_grad_(),
      torch::ones({}, torch::kDouble).requires_grad_(),
      torch::ones({33}).requires_grad_()};
  for (const int64_t groups : {0, 1}) {
    DistributedOptimizer optimizer =
        DistributeSgd(ParametersOf(parameters), WithViews().groups(groups));
    optimizer.zero_grad();
    Backward(parameters);
    optimizer.step();
    const std::vector<uintptr_t> addresses = GradientAddresses(parameters);
    EXPECT_EQ(addresses[3] % 64, 0u);
    EXPECT_EQ(addresses[2] - addresses[3], 192u);
    EXPECT_EQ(addresses[1] - addresses[2], 64u);
    EXPECT_EQ(addresses[0] - addresses[1], 64u);
  }
}

TEST(GradientViewTest, GradientsStayInTheirPlacesFromStepToStep) {
  for (const int64_t passes : {1, 2}) {
    Net net = MakeNet();
    {
      const torch::NoGradGuard no_grad;
      net->convolution->weight.set_data(net->convolution->weight.contiguous(
          torch::MemoryFormat::ChannelsLast));
    }
    DistributedOptimizer optimizer =
        Distribute(net, MakeSgd, WithViews().backward_passes_per_step(passes));
    std::vector<uintptr_t> addresses;
    for (int step = 0; step < 5; ++step) {
      for (int pass = 0; pass < passes; ++pass) {
        Loss(net, Shard(WholeBatch(step))).backward();
      }
      optimizer.synchronize();
      EXPECT_EQ(net->convolution->weight.grad().strides(),
                net->convolution->weight.strides());
      if (step == 0) addresses = GradientAddresses(net->parameters());
      EXPECT_EQ(GradientAddresses(net->parameters()), addresses);
      optimizer.step();
      EXPECT_EQ(GradientAddresses(net->parameters()), addresses);
      if (step == 0) net->zero_grad();
      if (step > 0) optimizer.zero_grad(/*set_to_none=*/step % 2 == 0);
    }
  }
}

// This checks before synchronize() could copy a result.
TEST(GradientViewTest, GradientsAreReducedInPlace) {
  torch::Tensor late = torch::ones({5}).requires_grad_();
  torch::Tensor early = torch::ones({5}).requires_grad_();
  torch::Tensor early_strided =
      torch::ones({4, 6}).slice(1, 0, 3).requires_grad_();
  ASSERT_FALSE(early_strided.is_non_overlapping_and_dense());
  DistributedOptimizer optimizer =
      DistributeSgd(ParametersOf({late, early, early_strided}),
                    WithViews().op(ReduceOp::Sum));
  for (int step = 0; step < 4; ++step) {
    const torch::Tensor row = late * 1.0;
    row.register_hook([&](const torch::Tensor&) {
      WaitForOthers();
      EXPECT_TRUE(AllEqual(early.grad(), SumOfRanks()));
      EXPECT_TRUE(AllEqual(early_strided.grad(), SumOfRanks()));
    });
    ((row.sum() + early.sum() + early_strided.sum()) * (rank() + 1)).backward();
    optimizer.synchronize();
    EXPECT_TRUE(AllEqual(late.grad(), SumOfRanks()));
    optimizer.zero_grad(/*set_to_none=*/step % 2 == 1);
  }
}

// Sizes as in models: larger than what is sent at once.
TEST(GradientViewTest, LargeGradientsAreReducedInEveryStep) {
  for (const int64_t groups : {0, 1}) {
    std::vector<torch::Tensor> parameters;
    for (const int64_t elements : {100'003, 3, 65'536, 40'001}) {
      parameters.push_back(torch::ones({elements}).requires_grad_());
    }
    DistributedOptimizer optimizer = DistributeSgd(
        ParametersOf(parameters), WithViews().op(ReduceOp::Sum).groups(groups));
    for (int step = 0; step < 8; ++step) {
      torch::Tensor sum = torch::zeros({});
      for (size_t i = 0; i < parameters.size(); ++i) {
        // In steps 4 and 5 rank 0 has no gradient of the first parameter.
        if (i == 0 && rank() == 0 && step / 2 == 2) continue;
        const torch::Tensor values = torch::arange(parameters[i].numel());
        sum = sum + (parameters[i] * values).sum() * (rank() + 1) * (step + 1);
      }
      sum.backward();
      optimizer.synchronize();
      for (size_t i = 0; i < parameters.size(); ++i) {
        const double ranks = SumOfRanks() - (i == 0 && step / 2 == 2 ? 1 : 0);
        EXPECT_TRUE(parameters[i].grad().defined() || ranks == 0);
        if (!parameters[i].grad().defined()) continue;
        const torch::Tensor values = torch::arange(parameters[i].numel());
        EXPECT_TRUE(parameters[i].grad().equal(
            (values * (ranks * (step + 1))).to(torch::kFloat)))
            << "parameter " << i << " in step " << step;
      }
      optimizer.zero_grad(/*set_to_none=*/step % 4 != 3);
    }
  }
}

TEST(GradientViewTest, GradientThatTheProgramSetsIsReducedInItsPlace) {
  torch::Tensor weight = torch::ones({4, 3}).requires_grad_();
  DistributedOptimizer optimizer =
      DistributeSgd(ParametersOf({weight}), WithViews().op(ReduceOp::Sum));
  Backward({weight});
  optimizer.step();
  const uintptr_t place = AddressOf(weight.grad());
  // New gradients: with other strides, in their own place, and there
  // transposed.
  for (int kind = 0; kind < 4; ++kind) {
    torch::Tensor mine = kind == 0   ? torch::empty({4, 3})
                         : kind == 1 ? torch::empty({3, 4}).t()
                         : kind == 2 ? weight.grad().detach()
                                     : weight.grad().as_strided({4, 3}, {1, 4});
    const torch::Tensor values = torch::arange(12.0).view({4, 3});
    mine.copy_(values);
    weight.mutable_grad() = mine;
    if (kind < 2) {
      // backward() adds to the existing gradient.
      weight.sum().backward();
      optimizer.synchronize();
      EXPECT_TRUE(weight.grad().equal((values + 1) * size()));
      EXPECT_TRUE(mine.equal(values + 1));
    } else {
      mine.reset();
      optimizer.synchronize();
      EXPECT_TRUE(weight.grad().equal(values * size()));
    }
    EXPECT_EQ(AddressOf(weight.grad()), place);
    EXPECT_TRUE(weight.grad().is_contiguous());
    optimizer.step();
  }
}

TEST(GradientViewTest, GradientsOutliveTheOptimizer) {
  torch::Tensor weight = torch::ones({1000}).requires_grad_();
  {
    DistributedOptimizer first =
        DistributeSgd(ParametersOf({weight}), WithViews().op(ReduceOp::Sum));
    const DistributedOptimizer second = std::move(first);
    Backward({weight});
  }
  EXPECT_TRUE(AllEqual(weight.grad(), SumOfRanks()));
  weight.grad().fill_(1);
  DistributedOptimizer next =
      DistributeSgd(ParametersOf({weight}), WithViews().op(ReduceOp::Sum));
  const uintptr_t old_place = AddressOf(weight.grad());
  weight.sum().backward();
  next.synchronize();
  EXPECT_TRUE(AllEqual(weight.grad(), 2 * size()));
  EXPECT_NE(AddressOf(weight.grad()), old_place);
}

TEST(GradientViewTest, LayoutMayChangeBetweenSteps) {
  Net net = MakeNet();
  DistributedOptimizer optimizer = Distribute(net, MakeSgd, WithViews());
  torch::Tensor& weight = net->convolution->weight;
  std::optional<uintptr_t> place;
  for (const auto format :
       {torch::MemoryFormat::Contiguous, torch::MemoryFormat::ChannelsLast}) {
    optimizer.zero_grad();
    weight.set_data(weight.detach().contiguous(format));
    Loss(net, Shard(WholeBatch(0))).backward();
    optimizer.synchronize();
    EXPECT_EQ(weight.grad().strides(), weight.strides());
    if (!place.has_value()) place = AddressOf(weight.grad());
    EXPECT_EQ(AddressOf(weight.grad()), *place);
    Net alone = MakeNet();
    Loss(alone, WholeBatch(0)).backward();
    EXPECT_TRUE(
        torch::allclose(weight.grad(), alone->convolution->weight.grad()));
  }
}

TEST(GradientViewTest, PlacesGrowWithTheParameters) {
  for (const int64_t groups : {0, 1}) {
    for (const int grows_in_step : {0, 1}) {
      std::vector<torch::Tensor> parameters = {
          torch::ones({16}).requires_grad_(),
          torch::ones({16}).requires_grad_()};
      DistributedOptimizer optimizer =
          DistributeSgd(ParametersOf(parameters), WithViews().groups(groups));
      std::vector<uintptr_t> addresses;
      for (int step = 0; step < 4; ++step) {
        if (step == grows_in_step) {
          for (torch::Tensor& one : parameters) {
            one.set_data(one.detach().to(torch::kDouble));
          }
        }
        optimizer.zero_grad(/*set_to_none=*/step != 2);
        Backward(parameters);
        optimizer.step();
        for (const torch::Tensor& one : parameters) {
          EXPECT_EQ(one.grad().scalar_type(), one.scalar_type());
          EXPECT_TRUE(AllEqual(one.grad(), SumOfRanks() / size()));
        }
        if (step == 2) addresses = GradientAddresses(parameters);
      }
      EXPECT_EQ(addresses[0] - addresses[1], 128u);
      EXPECT_EQ(GradientAddresses(parameters), addresses);
    }
  }
}

// The old gradients lie where the new ones will lie.
TEST(GradientViewTest, GradientsOfAnotherTypeAreConvertedInTheirPlaces) {
  torch::Tensor weight = torch::ones({7}, torch::kDouble).requires_grad_();
  DistributedOptimizer optimizer =
      DistributeSgd(ParametersOf({weight}),
                    WithViews().op(ReduceOp::Sum).backward_passes_per_step(2));
  weight.sum().backward();
  optimizer.synchronize();
  weight.set_data(weight.detach().to(torch::kFloat));
  weight.sum().backward();
  optimizer.step();
  EXPECT_EQ(weight.grad().scalar_type(), torch::kFloat);
  EXPECT_TRUE(AllEqual(weight.grad(), size() * (size() + 1)));
}

TEST(GradientViewTest, GradientWithAGraphKeepsIt) {
  torch::Tensor weight = torch::ones({3}).requires_grad_();
  DistributedOptimizer optimizer =
      DistributeSgd(ParametersOf({weight}), WithViews().op(ReduceOp::Sum));
  weight.square().sum().backward(/*gradient=*/{}, /*retain_graph=*/true,
                                 /*create_graph=*/true);
  optimizer.synchronize();
  EXPECT_TRUE(weight.grad().requires_grad());
  EXPECT_TRUE(AllEqual(weight.grad(), 2 * size()));
  const auto second = torch::autograd::grad({weight.grad().sum()}, {weight});
  EXPECT_TRUE(AllEqual(second[0], 2));
  optimizer.zero_grad();
  Backward({weight});
  optimizer.step();
  EXPECT_TRUE(AllEqual(weight.grad(), SumOfRanks()));
}

// The rank logs a warning.
TEST(GradientViewTest, RankWithoutMemoryWarnsAndTrains) {
  torch::Tensor weight = torch::ones({3}).requires_grad_();
  const int64_t elements = rank() == size() - 1 ? int64_t{1} << 54 : 1;
  torch::Tensor bias = torch::ones({1}).expand({elements}).detach();
  DistributedOptimizer optimizer = DistributeSgd(ParametersOf({weight, bias}),
                                                 WithViews().op(ReduceOp::Sum));
  bias.set_data(torch::ones({1}));
  bias.requires_grad_();
  for (int step = 0; step < 2; ++step) {
    optimizer.zero_grad();
    Backward({weight, bias});
    optimizer.step();
    EXPECT_TRUE(AllEqual(weight.grad(), SumOfRanks()));
    EXPECT_TRUE(AllEqual(bias.grad(), SumOfRanks()));
  }
}

TEST(GradientViewTest, EmptyParametersHaveGradients) {
  torch::Tensor empty = torch::ones({0, 3}).requires_grad_();
  torch::Tensor one = torch::ones({1}).requires_grad_();
  DistributedOptimizer optimizer =
      DistributeSgd(ParametersOf({one, empty}), WithViews());
  Backward({one, empty});
  optimizer.step();
  EXPECT_EQ(empty.grad().sizes(), empty.sizes());
  const DistributedOptimizer nothing =
      DistributeSgd(ParametersOf({empty}), WithViews());
}

}  // namespace
}  // namespace hvdlite
