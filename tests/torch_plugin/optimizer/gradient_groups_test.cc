// Gradients that are reduced in groups, on any number of ranks.
#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <hvdlite/hvdlite.h>
#include <torch/torch.h>

#include <string>
#include <vector>

#include "tests/torch_plugin/error_text.h"
#include "tests/torch_plugin/small_net.h"

namespace hvdlite {
namespace {

using ::testing::AllOf;
using ::testing::HasSubstr;

using Options = DistributedOptimizerOptions;

const ReduceOp kOps[] = {ReduceOp::Average, ReduceOp::Sum, ReduceOp::Adasum};

TEST(GradientGroupsTest, ParameterUnusedEverywhereStaysWithoutGradient) {
  for (const ReduceOp op : kOps) {
    Net net = MakeNet();
    DistributedOptimizer optimizer =
        Distribute(net, MakeSgd, Options().op(op).groups(1));
    net->linear->weight.sum().backward();
    optimizer.synchronize();
    EXPECT_TRUE(net->linear->weight.grad().defined());
    EXPECT_FALSE(net->linear->bias.grad().defined());
    EXPECT_FALSE(net->convolution->weight.grad().defined());
  }
}

TEST(GradientGroupsTest, GroupUnusedEverywhereStaysWithoutGradients) {
  Net net = MakeNet();
  DistributedOptimizer optimizer =
      Distribute(net, MakeSgd, Options().groups(1));
  optimizer.step();
  for (const torch::Tensor& parameter : net->parameters()) {
    EXPECT_FALSE(parameter.grad().defined());
  }
  ExpectClose(*net, *MakeNet());
}

// On rank 0 the whole group, on the last rank one parameter, on others nothing.
TEST(GradientGroupsTest, ParameterUsedOnSomeRanksGetsItsGradientEverywhere) {
  for (const ReduceOp op : kOps) {
    Net net = MakeNet();
    DistributedOptimizer optimizer =
        Distribute(net, MakeSgd, Options().op(op).groups(1));
    torch::Tensor& weight = net->linear->weight;
    torch::Tensor& bias = net->linear->bias;
    const double factor = op == ReduceOp::Average ? size() : 1;
    if (rank() == 0) (weight.sum() * factor).backward();
    if (rank() == size() - 1) (bias.sum() * factor).backward();
    optimizer.synchronize();
    ASSERT_TRUE(weight.grad().defined());
    ASSERT_TRUE(bias.grad().defined());
    EXPECT_TRUE(weight.grad().sub(1).abs().lt(1e-12).all().item<bool>());
    EXPECT_TRUE(bias.grad().sub(1).abs().lt(1e-12).all().item<bool>());
    EXPECT_FALSE(net->convolution->bias.grad().defined());
    optimizer.step();
    ExpectSameOnAllRanks(*net);
  }
}

// Who has a gradient is told in 16 bits, too, where it must not become 0.
TEST(GradientGroupsTest, PresenceSurvivesCompressionAndPredivision) {
  Net net = MakeNet();
  DistributedOptimizer optimizer =
      Distribute(net, MakeSgd,
                 Options()
                     .groups(1)
                     .compression(Compression::FP16)
                     .gradient_predivide_factor(1e9));
  if (rank() == 0) net->linear->bias.sum().backward();
  optimizer.synchronize();
  EXPECT_TRUE(net->linear->bias.grad().defined());
  EXPECT_FALSE(net->linear->weight.grad().defined());
}

TEST(GradientGroupsTest, MismatchNamesGroupAndParameter) {
  if (size() == 1) return;
  Net net = MakeNet();
  if (rank() == size() - 1) {
    const torch::NoGradGuard no_grad;
    net->linear->bias.set_data(torch::zeros({6}, torch::kDouble));
  }
  DistributedOptimizer optimizer =
      Distribute(net, MakeSgd, Options().name("mine").groups(1));
  net->linear->bias.sum().backward();
  const std::string text = ErrorText([&] { optimizer.step(); });
  EXPECT_THAT(text, AllOf(HasSubstr("'mine.grouped_allreduce.0'"),
                          HasSubstr("tensor 3 of the group"),
                          HasSubstr("3 'linear.bias'"), HasSubstr("[6]")));
  EXPECT_EQ(text, broadcast_object(text, 0));
}

// A member of the group is missing still, so that nothing is in flight.
TEST(GradientGroupsTest, BackwardIntoACompleteGradientIsRefused) {
  Net net = MakeNet();
  DistributedOptimizer optimizer =
      Distribute(net, MakeSgd, Options().groups(1));
  net->linear->bias.sum().backward();
  EXPECT_THAT(ErrorText([&] { net->linear->bias.sum().backward(); }),
              AllOf(HasSubstr("step() or synchronize() first"),
                    HasSubstr("linear.bias")));
  optimizer.zero_grad();
  net->linear->bias.sum().backward();
  optimizer.step();
}

TEST(GradientGroupsTest, GroupsThatDifferAmongRanksAreAnError) {
  if (size() == 1) return;
  Net net = MakeNet();
  DistributedOptimizer optimizer = Distribute(
      net, MakeSgd,
      Options().groups(std::vector<std::vector<at::Tensor>>{
          rank() == 0
              ? std::vector<at::Tensor>{net->linear->weight, net->linear->bias,
                                        net->convolution->weight,
                                        net->convolution->bias}
              : std::vector<at::Tensor>{net->convolution->bias,
                                        net->linear->weight, net->linear->bias,
                                        net->convolution->weight}}));
  Loss(net, Shard(WholeBatch(0))).backward();
  EXPECT_THAT(ErrorText([&] { optimizer.step(); }),
              HasSubstr("grouped_allreduce.0"));
}

}  // namespace
}  // namespace hvdlite
