// What DistributedOptimizer does step by step, on any number of ranks.
#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <hvdlite/hvdlite.h>
#include <torch/torch.h>
#include <unistd.h>

#include <cmath>
#include <cstdio>
#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "tests/torch_plugin/error_text.h"
#include "tests/torch_plugin/small_net.h"
#include "timeline/diagnose/step_analysis.h"
#include "timeline/diagnose/trace_summary.h"
#include "timeline/read/trace_reader.h"

namespace hvdlite {
namespace {

using ::testing::AllOf;
using ::testing::HasSubstr;

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

TEST(DistributedOptimizerTest, WaitingForGradientsIsInTheTimeline) {
  const std::string path = broadcast_object(
      ::testing::TempDir() + "hvdlite_" + std::to_string(getpid()) + ".json",
      0);
  Net net = MakeNet();
  DistributedOptimizer optimizer = Distribute(net);
  start_timeline(path);
  Loss(net, Shard(WholeBatch(0))).backward();
  optimizer.step();
  stop_timeline();
  if (rank() != 0) return;
  const auto trace = timeline::ReadTrace(path);
  ASSERT_TRUE(trace.ok()) << trace.status();
  const auto shares = timeline::SharesOf(*trace);
  ASSERT_TRUE(shares.has_value());
  EXPECT_EQ(shares->ranks, size());
  EXPECT_GT(shares->communicating, 0);
  ASSERT_TRUE(shares->exposed.has_value());
  EXPECT_GT(*shares->exposed, 0);
  std::remove(path.c_str());
}

TEST(DistributedOptimizerTest, WorkAndCpuTimeOfAStepAreInTheTimeline) {
  const std::string path = broadcast_object(
      ::testing::TempDir() + "hvdlite_" + std::to_string(getpid()) + ".json",
      0);
  Net net = MakeNet();
  DistributedOptimizer optimizer = Distribute(net);
  start_timeline(path);
  add_step_work(40);
  add_step_work(2);
  for (int step = 0; step < 2; ++step) {
    Loss(net, Shard(WholeBatch(step))).backward();
    optimizer.step();
    optimizer.zero_grad();
  }
  stop_timeline();
  if (rank() != 0) return;
  const auto trace = timeline::ReadTrace(path);
  ASSERT_TRUE(trace.ok()) << trace.status();
  const std::vector<timeline::RankStep> steps =
      timeline::AnalyzeSteps(*trace).steps;
  ASSERT_EQ(steps.size(), static_cast<size_t>(2 * size()));
  EXPECT_EQ(steps.front().work, 42);
  EXPECT_EQ(steps.back().work, -1);
  EXPECT_GE(steps.back().cpu_ns, 0);
  std::remove(path.c_str());
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

TEST(DistributedOptimizerTest, GradientsCanBeClippedBetweenSynchronizeAndStep) {
  Net net = MakeNet();
  Net alone = MakeNet();
  DistributedOptimizer optimizer = Distribute(net);
  const auto optimizer_alone = MakeSgd(alone);
  const Batch batch = WholeBatch(0);
  (100 * Loss(net, Shard(batch))).backward();
  optimizer.synchronize();
  const double norm = torch::nn::utils::clip_grad_norm_(net->parameters(), 0.5);
  optimizer.step();
  (100 * Loss(alone, batch)).backward();
  EXPECT_NEAR(torch::nn::utils::clip_grad_norm_(alone->parameters(), 0.5), norm,
              1e-9);
  EXPECT_GT(norm, 0.5);
  optimizer_alone->step();
  ExpectClose(*net, *alone);
}

TEST(DistributedOptimizerTest, FewerPassesThanAnnouncedAreReducedByStep) {
  Net net = MakeNet();
  DistributedOptimizer optimizer = Distribute(
      net, MakeSgd, DistributedOptimizerOptions().backward_passes_per_step(3));
  Net alone = MakeNet();
  const auto optimizer_alone = MakeSgd(alone);
  TrainStep(net, optimizer, {Shard(WholeBatch(0))});
  TrainStep(alone, *optimizer_alone, {WholeBatch(0)});
  ExpectClose(*net, *alone);
}

TEST(DistributedOptimizerTest, ClosureWithoutLossGetsTheOthersLoss) {
  Net net = MakeNet();
  DistributedOptimizer optimizer = Distribute(net);
  const torch::Tensor nobody = optimizer.step([] { return torch::Tensor(); });
  EXPECT_FALSE(nobody.defined());
  const torch::Tensor loss = optimizer.step(
      [] { return rank() == 0 ? torch::full({1}, 5.0f) : torch::Tensor(); });
  EXPECT_EQ(loss.item<double>(), 5);
}

TEST(DistributedOptimizerTest, ClosureThatReturnsNoLossIsTheSameErrorOnAll) {
  Net net = MakeNet();
  DistributedOptimizer optimizer = Distribute(net);
  const std::string text = ErrorText([&] {
    optimizer.step([] { return torch::zeros({rank() == 0 ? 2 : 1}); });
  });
  EXPECT_THAT(text, HasSubstr("return one real value"));
  EXPECT_EQ(text, broadcast_object(text, 0));
}

// The second of LBFGS's evaluations fails, when it has changed the parameters.
TEST(DistributedOptimizerTest, StepThatThrowsLeavesParametersUnchanged) {
  Net net = MakeNet();
  DistributedOptimizer optimizer = Distribute(net, [](Net& model) {
    return std::make_unique<torch::optim::LBFGS>(model->parameters());
  });
  int calls = 0;
  const auto closure = [&] {
    optimizer.zero_grad();
    const torch::Tensor loss = Loss(net, Shard(WholeBatch(0)));
    loss.backward();
    ++calls;
    return calls == 2 ? torch::zeros({2}) : loss.detach();
  };
  EXPECT_THAT(ErrorText([&] { optimizer.step(closure); }),
              HasSubstr("return one real value"));
  EXPECT_EQ(calls, 2);
  EXPECT_TRUE(net->linear->weight.equal(MakeNet()->linear->weight));
  // Nothing is in flight.
  Loss(net, Shard(WholeBatch(0))).backward();
  optimizer.synchronize();
}

// The other ranks reduce what they have on each of LBFGS's evaluations.
TEST(DistributedOptimizerTest, ClosureMayComputeNoGradientOnOneRank) {
  if (size() == 1) return;
  Net net = MakeNet();
  DistributedOptimizer optimizer = Distribute(net, [](Net& model) {
    return std::make_unique<torch::optim::LBFGS>(
        model->parameters(), torch::optim::LBFGSOptions(0.1).max_iter(4));
  });
  int calls = 0;
  optimizer.step([&] {
    for (torch::Tensor& parameter : net->parameters()) {
      parameter.mutable_grad().reset();
    }
    const torch::Tensor loss = Loss(net, Shard(WholeBatch(0)));
    if (rank() == 0 || calls == 0) loss.backward();
    ++calls;
    return loss.detach();
  });
  EXPECT_GT(calls, 1);
  ExpectSameOnAllRanks(*net);
}

// Whatever the order in which gradients are complete.
TEST(DistributedOptimizerTest, FirstOfSeveralErrorsIsTheSameOnAllRanks) {
  if (size() == 1) return;
  const int64_t differs = rank() == size() - 1 ? 1 : 0;
  torch::Tensor one = torch::ones({3 + differs}).requires_grad_();
  torch::Tensor two = torch::ones({5 + differs}).requires_grad_();
  torch::OrderedDict<std::string, torch::Tensor> parameters;
  parameters.insert("one", one);
  parameters.insert("two", two);
  DistributedOptimizer optimizer(
      std::make_unique<torch::optim::SGD>(parameters.values(), 1.0),
      parameters);
  if (rank() == 0) one.sum().backward();
  two.sum().backward();
  if (rank() != 0) one.sum().backward();
  const std::string text = ErrorText([&] { optimizer.step(); });
  EXPECT_THAT(text, HasSubstr("allreduce.one'"));
  EXPECT_EQ(text, broadcast_object(text, 0));
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
  for (const ReduceOp op : {ReduceOp::Min, ReduceOp::Max, ReduceOp::Product}) {
    EXPECT_THAT(refused(Options().op(op)), HasSubstr("is not supported"));
  }
  EXPECT_THAT(refused(Options().backward_passes_per_step(0)),
              HasSubstr("at least 1"));
  for (const double factor : {0.0, -1.0, std::nan(""), HUGE_VAL, 1e-320}) {
    EXPECT_THAT(refused(Options().gradient_predivide_factor(factor)),
                HasSubstr("finite number greater than 0"));
  }
  EXPECT_THAT(refused(Options().gradient_predivide_factor(2).op(ReduceOp::Sum)),
              HasSubstr("op Average only"));
  EXPECT_THAT(refused(Options().groups(-1)), HasSubstr("groups is -1"));
  const auto grouped = [&](std::vector<std::vector<at::Tensor>> groups) {
    return refused(Options().groups(std::move(groups)));
  };
  EXPECT_THAT(grouped({{}}), HasSubstr("group 0 of groups has no parameters"));
  EXPECT_THAT(grouped({{net->linear->bias}, {torch::zeros({3})}}),
              AllOf(HasSubstr("tensor 0 of group 1"), HasSubstr("[3]"),
                    HasSubstr("not a parameter")));
  EXPECT_THAT(grouped({{at::Tensor()}}), HasSubstr("undefined"));
  EXPECT_THAT(grouped({{net->linear->bias}, {net->linear->bias}}),
              AllOf(HasSubstr("'linear.bias'"), HasSubstr("twice")));
  const ProcessSet first = add_process_set({0});
  if (!first.included()) {
    EXPECT_THAT(refused(Options().process_set(first)),
                HasSubstr("DistributedOptimizer"));
  }
  remove_process_set(first);
}

// The automatic names of sets that overlap, and of what failed on one rank, do
// not get in each other's way.
TEST(DistributedOptimizerTest, OptimizersOfOverlappingSetsDoNotClash) {
  const ProcessSet first = add_process_set({0});
  const ProcessSet even = EvenRanks();
  Net in_first = MakeNet();
  Net in_even = MakeNet();
  Net in_all = MakeNet();
  std::vector<DistributedOptimizer> optimizers;
  using Options = DistributedOptimizerOptions;
  if (first.included()) {
    optimizers.push_back(
        Distribute(in_first, MakeSgd, Options().process_set(first)));
    Loss(in_first, Shard(WholeBatch(0, 1), 0)).backward();
  }
  if (even.included()) {
    optimizers.push_back(
        Distribute(in_even, MakeSgd, Options().process_set(even)));
    Loss(in_even, Shard(WholeBatch(0, even.size()), even.rank())).backward();
  }
  optimizers.push_back(Distribute(in_all));
  Loss(in_all, Shard(WholeBatch(0))).backward();
  while (!optimizers.empty()) {
    optimizers.back().step();
    optimizers.pop_back();
  }
  const auto expect = [](Net& net, int ranks) {
    Net alone = MakeNet();
    const auto optimizer = MakeSgd(alone);
    TrainStep(alone, *optimizer, {WholeBatch(0, ranks)});
    ExpectClose(*net, *alone);
  };
  if (first.included()) expect(in_first, 1);
  if (even.included()) expect(in_even, even.size());
  expect(in_all, size());
  remove_process_set(even);
  remove_process_set(first);
}

}  // namespace
}  // namespace hvdlite
