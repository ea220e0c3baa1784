// DistributedOptimizer on shards of a batch against one process on the whole
// batch, on any number of ranks.
#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <hvdlite/hvdlite.h>
#include <torch/torch.h>

#include <functional>
#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "tests/torch_plugin/error_text.h"
#include "tests/torch_plugin/small_net.h"

namespace hvdlite {
namespace {

using ::testing::AllOf;
using ::testing::HasSubstr;

void ExpectClose(const torch::nn::Module& actual,
                 const torch::nn::Module& expected) {
  const auto wanted = expected.named_parameters();
  for (const auto& item : actual.named_parameters()) {
    EXPECT_TRUE(torch::allclose(item.value(), wanted[item.key()], 1e-9, 1e-11))
        << item.key();
  }
}

using MakeOptimizer =
    std::function<std::unique_ptr<torch::optim::Optimizer>(Net&)>;

std::unique_ptr<torch::optim::Optimizer> MakeSgd(Net& net) {
  return std::make_unique<torch::optim::SGD>(net->parameters(), 0.1);
}

std::unique_ptr<torch::optim::Optimizer> MakeMomentum(Net& net) {
  return std::make_unique<torch::optim::SGD>(
      net->parameters(),
      torch::optim::SGDOptions(0.1).momentum(0.9).weight_decay(0.01));
}

std::unique_ptr<torch::optim::Optimizer> MakeAdam(Net& net) {
  return std::make_unique<torch::optim::Adam>(net->parameters(), 0.01);
}

DistributedOptimizer Distribute(
    Net& net, const MakeOptimizer& make = MakeSgd,
    const DistributedOptimizerOptions& options = {}) {
  return DistributedOptimizer(make(net), net->named_parameters(), options);
}

void ExpectTrainsAsOneProcess(const MakeOptimizer& make, Net net,
                              const DistributedOptimizerOptions& options = {}) {
  Net alone = MakeNet();
  const auto optimizer_alone = make(alone);
  DistributedOptimizer optimizer = Distribute(net, make, options);
  for (int step = 0; step < 4; ++step) {
    const Batch batch = WholeBatch(step);
    optimizer_alone->zero_grad();
    Loss(alone, batch).backward();
    optimizer_alone->step();
    optimizer.zero_grad();
    Loss(net, Shard(batch)).backward();
    optimizer.step();
    ExpectClose(*net, *alone);
  }
  ExpectSameOnAllRanks(*net);
}

TEST(DistributedOptimizerTest, SgdTrainsAsOneProcess) {
  ExpectTrainsAsOneProcess(MakeSgd, MakeNet());
}

TEST(DistributedOptimizerTest, MomentumTrainsAsOneProcess) {
  ExpectTrainsAsOneProcess(MakeMomentum, MakeNet());
}

TEST(DistributedOptimizerTest, AdamTrainsAsOneProcess) {
  ExpectTrainsAsOneProcess(MakeAdam, MakeNet());
}

TEST(DistributedOptimizerTest, PredividedAverageTrainsAsOneProcess) {
  ExpectTrainsAsOneProcess(
      MakeSgd, MakeNet(),
      DistributedOptimizerOptions().gradient_predivide_factor(2.0));
}

TEST(DistributedOptimizerTest, ChannelsLastParametersTrainAsOneProcess) {
  Net net = MakeNet();
  const torch::NoGradGuard no_grad;
  net->convolution->weight.set_data(
      net->convolution->weight.contiguous(torch::MemoryFormat::ChannelsLast));
  ASSERT_FALSE(net->convolution->weight.is_contiguous());
  const torch::AutoGradMode with_gradients(true);
  ExpectTrainsAsOneProcess(MakeSgd, net);
}

TEST(DistributedOptimizerTest, LayoutThatDiffersAmongRanksIsAnError) {
  Net net = MakeNet();
  if (rank() == size() - 1) {
    const torch::NoGradGuard no_grad;
    net->convolution->weight.set_data(
        net->convolution->weight.contiguous(torch::MemoryFormat::ChannelsLast));
  }
  DistributedOptimizer optimizer = Distribute(net);
  Loss(net, Shard(WholeBatch(0))).backward();
  const std::string text = ErrorText([&] { optimizer.step(); });
  if (size() == 1) {
    EXPECT_EQ(text, "nothing was thrown");
  } else {
    EXPECT_THAT(text, HasSubstr("convolution.weight"));
    EXPECT_EQ(text, broadcast_object(text, 0));
    ExpectClose(*net, *MakeNet());
  }
}

TEST(DistributedOptimizerTest, NonContiguousGradientsAreReduced) {
  Net net = MakeNet();
  DistributedOptimizer optimizer = Distribute(net);
  torch::Tensor& weight = net->linear->weight;
  // Accumulation keeps the strides of a gradient that is there.
  weight.mutable_grad() =
      torch::zeros({weight.size(1), weight.size(0)}, torch::kDouble).t();
  Loss(net, Shard(WholeBatch(0))).backward();
  ASSERT_FALSE(weight.grad().is_contiguous());
  optimizer.synchronize();
  ASSERT_FALSE(weight.grad().is_contiguous());
  Net alone = MakeNet();
  Loss(alone, WholeBatch(0)).backward();
  EXPECT_TRUE(torch::allclose(weight.grad(), alone->linear->weight.grad()));
}

TEST(DistributedOptimizerTest, ParameterUnusedEverywhereStaysWithoutGradient) {
  Net net = MakeNet();
  DistributedOptimizer optimizer = Distribute(net);
  net->linear->weight.sum().backward();
  optimizer.step();
  EXPECT_FALSE(net->convolution->weight.grad().defined());
  EXPECT_FALSE(net->linear->bias.grad().defined());
  EXPECT_TRUE(net->linear->weight.grad().eq(1).all().item<bool>());
}

TEST(DistributedOptimizerTest,
     ParameterUsedOnOneRankGetsItsGradientEverywhere) {
  Net net = MakeNet();
  DistributedOptimizer optimizer = Distribute(net);
  torch::Tensor sum = net->linear->weight.sum();
  if (rank() == 0) sum = sum + net->linear->bias.sum() * size();
  sum.backward();
  optimizer.step();
  ASSERT_TRUE(net->linear->bias.grad().defined());
  EXPECT_TRUE(net->linear->bias.grad().eq(1).all().item<bool>());
  ExpectSameOnAllRanks(*net);
}

TEST(DistributedOptimizerTest, PassesAddUpBeforeTheyAreReduced) {
  Net net = MakeNet();
  DistributedOptimizer optimizer = Distribute(
      net, MakeSgd, DistributedOptimizerOptions().backward_passes_per_step(2));
  Net alone = MakeNet();
  const auto optimizer_alone = MakeSgd(alone);
  for (int step = 0; step < 2; ++step) {
    optimizer.zero_grad();
    optimizer_alone->zero_grad();
    for (int pass = 0; pass < 2; ++pass) {
      const Batch batch = WholeBatch(2 * step + pass);
      Loss(net, Shard(batch)).backward();
      Loss(alone, batch).backward();
    }
    optimizer.step();
    optimizer_alone->step();
    ExpectClose(*net, *alone);
  }
}

TEST(DistributedOptimizerTest, BackwardIntoGradientsInFlightIsRefused) {
  Net net = MakeNet();
  DistributedOptimizer optimizer = Distribute(net);
  Loss(net, Shard(WholeBatch(0))).backward();
  EXPECT_THAT(
      ErrorText([&] { Loss(net, Shard(WholeBatch(1))).backward(); }),
      AllOf(HasSubstr("step() or synchronize() first"), HasSubstr("linear.")));
  optimizer.step();
  optimizer.zero_grad();
  Loss(net, Shard(WholeBatch(1))).backward();
  optimizer.step();
  ExpectSameOnAllRanks(*net);
}

TEST(DistributedOptimizerTest, SynchronizeThenStepReducesOnce) {
  Net net = MakeNet();
  DistributedOptimizer optimizer =
      Distribute(net, MakeSgd, DistributedOptimizerOptions().op(ReduceOp::Sum));
  net->linear->bias.sum().backward();
  optimizer.synchronize();
  EXPECT_TRUE(net->linear->bias.grad().eq(size()).all().item<bool>());
  optimizer.step();
  EXPECT_TRUE(net->linear->bias.grad().eq(size()).all().item<bool>());
}

TEST(DistributedOptimizerTest, ClosureSeesTheAveragedLoss) {
  Net net = MakeNet();
  Net alone = MakeNet();
  DistributedOptimizer optimizer(
      std::make_unique<torch::optim::LBFGS>(
          net->parameters(), torch::optim::LBFGSOptions(0.1).max_iter(3)),
      net->named_parameters());
  torch::optim::LBFGS optimizer_alone(
      alone->parameters(), torch::optim::LBFGSOptions(0.1).max_iter(3));
  const Batch batch = WholeBatch(0);
  const torch::Tensor loss = optimizer.step([&] {
    optimizer.zero_grad();
    torch::Tensor shard_loss = Loss(net, Shard(batch));
    shard_loss.backward();
    return shard_loss;
  });
  const torch::Tensor loss_alone = optimizer_alone.step([&] {
    optimizer_alone.zero_grad();
    torch::Tensor whole_loss = Loss(alone, batch);
    whole_loss.backward();
    return whole_loss;
  });
  EXPECT_NEAR(loss.item<double>(), loss_alone.item<double>(), 1e-9);
  ExpectClose(*net, *alone);
}

TEST(DistributedOptimizerTest, ZeroGradWaitsAndClears) {
  Net net = MakeNet();
  DistributedOptimizer optimizer = Distribute(net);
  Loss(net, Shard(WholeBatch(0))).backward();
  optimizer.zero_grad();
  EXPECT_FALSE(net->linear->weight.grad().defined());
  Loss(net, Shard(WholeBatch(0))).backward();
  optimizer.zero_grad(/*set_to_none=*/false);
  EXPECT_TRUE(net->linear->weight.grad().eq(0).all().item<bool>());
}

TEST(DistributedOptimizerTest, HooksDieWithTheOptimizer) {
  Net net = MakeNet();
  {
    DistributedOptimizer optimizer = Distribute(net);
    Loss(net, Shard(WholeBatch(0))).backward();
  }
  // Nothing is reduced, nothing is in flight, nothing throws.
  for (int pass = 0; pass < 3; ++pass) {
    net->zero_grad();
    (net->linear->bias.sum() * (rank() + 1)).backward();
    EXPECT_TRUE(net->linear->bias.grad().eq(rank() + 1).all().item<bool>());
  }
  DistributedOptimizer next = Distribute(net);
  next.zero_grad();
  Loss(net, Shard(WholeBatch(0))).backward();
  next.step();
  ExpectSameOnAllRanks(*net);
}

TEST(DistributedOptimizerTest, SumIsNotCountedTwiceBySynchronizingAgain) {
  Net net = MakeNet();
  DistributedOptimizer optimizer =
      Distribute(net, MakeSgd, DistributedOptimizerOptions().op(ReduceOp::Sum));
  optimizer.zero_grad();
  torch::Tensor& weight = net->linear->weight;
  torch::Tensor& bias = net->linear->bias;
  (weight.sum() + bias.sum()).backward();
  optimizer.synchronize();
  bias.sum().backward();  // of a part of the parameters
  optimizer.synchronize();
  EXPECT_TRUE(weight.grad().eq(size()).all().item<bool>());
  EXPECT_TRUE(bias.grad().eq((size() + 1) * size()).all().item<bool>());
  optimizer.zero_grad();
}

TEST(DistributedOptimizerTest, MovedOptimizerGoesOnAndKeepsItsInnerAddress) {
  Net net = MakeNet();
  DistributedOptimizer first = Distribute(net);
  const torch::optim::Optimizer* const inner = &first.inner();
  Loss(net, Shard(WholeBatch(0))).backward();
  DistributedOptimizer second = std::move(first);
  EXPECT_EQ(&second.inner(), inner);
  EXPECT_THAT(ErrorText([&] { first.step(); }), HasSubstr("moved from"));
  second.step();
  Net alone = MakeNet();
  const auto optimizer_alone = MakeSgd(alone);
  Loss(alone, WholeBatch(0)).backward();
  optimizer_alone->step();
  ExpectClose(*net, *alone);
}

TEST(DistributedOptimizerTest, TwoOptimizersWithTheSameNamesDoNotClash) {
  Net one = MakeNet();
  Net two = MakeNet();
  DistributedOptimizer optimizer_one = Distribute(one);
  DistributedOptimizer optimizer_two = Distribute(two);
  Loss(one, Shard(WholeBatch(0))).backward();
  Loss(two, Shard(WholeBatch(0))).backward();
  optimizer_two.step();
  optimizer_one.step();
  ExpectClose(*one, *two);
}

TEST(DistributedOptimizerTest, BadConstructionIsRefused) {
  Net net = MakeNet();
  EXPECT_THAT(ErrorText([&] {
                DistributedOptimizer(MakeSgd(net),
                                     net->linear->named_parameters());
              }),
              HasSubstr("not in named_parameters"));
  torch::OrderedDict<std::string, torch::Tensor> twice =
      net->named_parameters();
  twice.insert("again", net->linear->bias);
  EXPECT_THAT(ErrorText([&] { DistributedOptimizer(MakeSgd(net), twice); }),
              AllOf(HasSubstr("'linear.bias'"), HasSubstr("'again'")));
  const auto refused = [&](const DistributedOptimizerOptions& options) {
    return ErrorText([&] { Distribute(net, MakeSgd, options); });
  };
  using Options = DistributedOptimizerOptions;
  EXPECT_THAT(refused(Options().sparse_as_dense(true)),
              HasSubstr("sparse_as_dense"));
  EXPECT_THAT(refused(Options().gradient_as_fusion_view(true)),
              HasSubstr("gradient_as_fusion_view"));
  EXPECT_THAT(refused(Options().compression(Compression::BF16)),
              HasSubstr("BF16"));
  EXPECT_THAT(refused(Options().op(ReduceOp::Max)), HasSubstr("Max"));
  EXPECT_THAT(refused(Options().backward_passes_per_step(0)),
              HasSubstr("at least 1"));
}

TEST(DistributedOptimizerTest, SparseGradientOfOneRankIsTheSameErrorOnAll) {
  torch::manual_seed(1);
  torch::nn::Embedding embedding(
      torch::nn::EmbeddingOptions(4, 2).sparse(rank() == 0));
  DistributedOptimizer optimizer(
      std::make_unique<torch::optim::SGD>(embedding->parameters(), 0.1),
      embedding->named_parameters());
  embedding->forward(torch::tensor({1, 2})).sum().backward();
  EXPECT_THAT(
      ErrorText([&] { optimizer.step(); }),
      AllOf(HasSubstr("weight"), HasSubstr("on rank 0"), HasSubstr("sparse")));
  optimizer.zero_grad();
  embedding->weight.sum().backward();
  optimizer.step();
}

}  // namespace
}  // namespace hvdlite
