// Parameters that are frozen and unfrozen on the way, on any number of ranks.
#include <gtest/gtest.h>
#include <hvdlite/hvdlite.h>
#include <torch/torch.h>

#include <cstdint>
#include <tuple>

#include "tests/torch_plugin/error_text.h"
#include "tests/torch_plugin/small_net.h"

namespace hvdlite {
namespace {

void Freeze(Net& net, bool frozen) {
  for (torch::Tensor& parameter : net->convolution->parameters()) {
    parameter.requires_grad_(!frozen);
  }
}

// Groups, and whether gradients are views.
class FrozenParametersTest
    : public ::testing::TestWithParam<std::tuple<int64_t, bool>> {
 protected:
  DistributedOptimizerOptions options() const {
    return DistributedOptimizerOptions()
        .groups(std::get<0>(GetParam()))
        .gradient_as_fusion_view(std::get<1>(GetParam()));
  }
};

INSTANTIATE_TEST_SUITE_P(, FrozenParametersTest,
                         ::testing::Combine(::testing::Values(0, 1, 2),
                                            ::testing::Bool()));

// frozen -> trained -> frozen -> trained
TEST_P(FrozenParametersTest, OnAllRanksTrainsAsOneProcess) {
  Net net = MakeNet();
  Net alone = MakeNet();
  Freeze(net, true);
  Freeze(alone, true);
  DistributedOptimizer optimizer = Distribute(net, MakeSgd, options());
  const auto optimizer_alone = MakeSgd(alone);
  for (int step = 0; step < 8; ++step) {
    const bool frozen = step / 2 % 2 == 0;
    Freeze(net, frozen);
    Freeze(alone, frozen);
    optimizer_alone->zero_grad();
    for (torch::Tensor& parameter : alone->parameters()) {
      parameter.mutable_grad().reset();
    }
    Loss(alone, WholeBatch(step)).backward();
    optimizer_alone->step();
    optimizer.zero_grad();
    Loss(net, Shard(WholeBatch(step))).backward();
    EXPECT_NE(net->convolution->weight.grad().defined(), frozen);
    optimizer.step();
    EXPECT_NE(net->convolution->weight.grad().defined(), frozen);
    ExpectClose(*net, *alone);
  }
}

// The others count as zeros, and get the result.
TEST_P(FrozenParametersTest, OnSomeRanksGetsTheOthersGradient) {
  Net net = MakeNet();
  DistributedOptimizer optimizer = Distribute(net, MakeSgd, options());
  torch::Tensor& bias = net->convolution->bias;
  for (int step = 0; step < 4; ++step) {
    const bool frozen = rank() != 0 && step % 2 == 0;
    Freeze(net, frozen);
    optimizer.zero_grad();
    torch::Tensor sum = net->linear->bias.sum();
    if (!frozen) sum = sum + bias.sum();
    sum.backward();
    optimizer.step();
    ASSERT_TRUE(bias.grad().defined());
    const double expected = step % 2 == 0 ? 1.0 / size() : 1.0;
    EXPECT_TRUE(bias.grad().sub(expected).abs().lt(1e-12).all().item<bool>());
    EXPECT_FALSE(net->linear->weight.grad().defined());
    ExpectSameOnAllRanks(*net);
  }
}

// Its hooks are there from the next step on.
TEST_P(FrozenParametersTest, UnfrozenParameterIsWatched) {
  Net net = MakeNet();
  Freeze(net, true);
  DistributedOptimizer optimizer = Distribute(net, MakeSgd, options());
  Freeze(net, false);
  optimizer.zero_grad();
  Loss(net, Shard(WholeBatch(0))).backward();
  EXPECT_NE(ErrorText([&] { net->convolution->bias.sum().backward(); }),
            "nothing was thrown");
  optimizer.step();
}

}  // namespace
}  // namespace hvdlite
