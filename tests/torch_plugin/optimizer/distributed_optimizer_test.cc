// The steps of DistributedOptimizer in detail, on any number of ranks.
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

#include "tests/torch_plugin/same_error.h"
#include "tests/torch_plugin/small_net.h"
#include "timeline/diagnose/step_analysis.h"
#include "timeline/diagnose/trace_summary.h"
#include "timeline/read/trace_reader.h"

namespace hvdlite {
namespace {

using ::testing::AllOf;
using ::testing::HasSubstr;

using Options = DistributedOptimizerOptions;

constexpr ReduceOp kOptimizerOps[] = {ReduceOp::Average, ReduceOp::Sum,
                                      ReduceOp::Adasum};

class GradientsTest : public EveryWayTest {};

INSTANTIATE_TEST_SUITE_P(, GradientsTest, EveryWay());

TEST_P(GradientsTest, ParameterUnusedEverywhereStaysWithoutGradient) {
  for (const ReduceOp op : kOptimizerOps) {
    torch::Tensor used = torch::ones({3}).requires_grad_();
    torch::Tensor unused = torch::ones({3}).requires_grad_();
    const Parameters parameters = {{"used", used}, {"unused", unused}};
    DistributedOptimizer optimizer(
        std::make_unique<torch::optim::SGD>(
            parameters.values(), torch::optim::SGDOptions(0.5).weight_decay(1)),
        parameters, options().op(op));
    // Use it once, so that there is an old gradient in its place.
    Backward({used, unused});
    optimizer.synchronize();
    for (int step = 0; step < 2; ++step) {
      optimizer.zero_grad();
      Backward({used});
      optimizer.step();
      EXPECT_TRUE(used.grad().defined());
      EXPECT_FALSE(unused.grad().defined());
      EXPECT_TRUE(AllEqual(unused, 1));
    }
    optimizer.zero_grad();
    const torch::Tensor before = used.detach().clone();
    optimizer.step();
    EXPECT_FALSE(used.grad().defined());
    EXPECT_TRUE(used.equal(before));
  }
}

// The first rank uses all parameters except one, the last rank uses that one,
// and other ranks use none.
TEST_P(GradientsTest, ParameterUsedOnSomeRanksGetsItsGradientEverywhere) {
  for (const ReduceOp op : kOptimizerOps) {
    Net net = MakeNet();
    DistributedOptimizer optimizer = Distribute(net, MakeSgd, options().op(op));
    torch::Tensor& weight = net->linear->weight;
    torch::Tensor& bias = net->linear->bias;
    const double factor = op == ReduceOp::Average ? size() : 1;
    for (int step = 0; step < 3; ++step) {
      if (rank() == 0) (weight.sum() * factor).backward();
      if (rank() == size() - 1) (bias.sum() * factor).backward();
      optimizer.synchronize();
      for (const torch::Tensor& one : {weight, bias}) {
        ASSERT_TRUE(one.grad().defined());
        EXPECT_TRUE(torch::allclose(one.grad(), torch::ones_like(one)));
      }
      EXPECT_FALSE(net->convolution->bias.grad().defined());
      optimizer.step();
      ExpectSameOnAllRanks(*net);
      optimizer.zero_grad(/*set_to_none=*/step == 0);
    }
  }
}

// The presence of gradients is also sent in 16 bits. It must not become 0
// there.
TEST_P(GradientsTest, PresenceSurvivesCompressionAndPredivision) {
  Net net = MakeNet();
  DistributedOptimizer optimizer = Distribute(
      net, MakeSgd,
      options().compression(Compression::FP16).gradient_predivide_factor(1e9));
  if (rank() == 0) net->linear->bias.sum().backward();
  optimizer.synchronize();
  EXPECT_TRUE(net->linear->bias.grad().defined());
  EXPECT_FALSE(net->linear->weight.grad().defined());
}

TEST_P(GradientsTest, NonContiguousGradientsAreReduced) {
  Net net = MakeNet();
  DistributedOptimizer optimizer = Distribute(net, MakeSgd, options());
  torch::Tensor& weight = net->linear->weight;
  // Accumulation keeps the strides of an existing gradient.
  weight.mutable_grad() =
      torch::zeros({weight.size(1), weight.size(0)}, torch::kDouble).t();
  Loss(net, Shard(WholeBatch(0))).backward();
  optimizer.synchronize();
  EXPECT_EQ(weight.grad().is_contiguous(), has_views());
  Net alone = MakeNet();
  Loss(alone, WholeBatch(0)).backward();
  EXPECT_TRUE(torch::allclose(weight.grad(), alone->linear->weight.grad()));
}

// The gradient is in flight, and is complete while others of its group are not.
TEST_P(GradientsTest, BackwardIntoACompleteGradientIsRejected) {
  Net net = MakeNet();
  DistributedOptimizer optimizer = Distribute(net, MakeSgd, options());
  const auto backward = [&] { net->linear->bias.sum().backward(); };
  backward();
  EXPECT_THAT(ErrorText(backward), AllOf(HasSubstr("step() or synchronize()"),
                                         HasSubstr("linear.bias")));
  for (int step = 0; step < 2; ++step) {
    optimizer.zero_grad();
    backward();
    optimizer.step();
    ExpectSameOnAllRanks(*net);
  }
}

TEST_P(GradientsTest, SumIsNotCountedTwiceBySynchronizingAgain) {
  torch::Tensor one = torch::ones({3}).requires_grad_();
  torch::Tensor two = torch::ones({3}).requires_grad_();
  DistributedOptimizer optimizer =
      DistributeSgd({{"one", one}, {"two", two}}, options().op(ReduceOp::Sum));
  (one.sum() + two.sum()).backward();
  optimizer.synchronize();
  optimizer.synchronize();
  two.sum().backward();  // uses some of the parameters only
  for (const bool step : {false, true}) {
    step ? static_cast<void>(optimizer.step()) : optimizer.synchronize();
    EXPECT_TRUE(AllEqual(one.grad(), size()));
    EXPECT_TRUE(AllEqual(two.grad(), (size() + 1) * size()));
  }
  EXPECT_TRUE(AllEqual(one, 1 - size()));
}

TEST_P(GradientsTest, FewerPassesThanAnnouncedAreReducedByStep) {
  Net net = MakeNet();
  DistributedOptimizer optimizer =
      Distribute(net, MakeSgd, options().backward_passes_per_step(3));
  Net alone = MakeNet();
  const auto optimizer_alone = MakeSgd(alone);
  TrainStep(net, optimizer, {Shard(WholeBatch(0))});
  TrainStep(alone, *optimizer_alone, {WholeBatch(0)});
  ExpectClose(*net, *alone);
}

TEST_P(GradientsTest, ZeroGradWaitsAndClears) {
  Net net = MakeNet();
  DistributedOptimizer optimizer = Distribute(net, MakeSgd, options());
  Loss(net, Shard(WholeBatch(0))).backward();
  optimizer.zero_grad();
  EXPECT_FALSE(net->linear->weight.grad().defined());
  Loss(net, Shard(WholeBatch(0))).backward();
  optimizer.zero_grad(/*set_to_none=*/false);
  EXPECT_TRUE(AllEqual(net->linear->weight.grad(), 0));
}

TEST_P(GradientsTest, HooksAreRemovedWithTheOptimizer) {
  Net net = MakeNet();
  {
    DistributedOptimizer optimizer = Distribute(net, MakeSgd, options());
    Loss(net, Shard(WholeBatch(0))).backward();
  }
  // Nothing is reduced, nothing is in flight, and nothing throws.
  for (int pass = 0; pass < 3; ++pass) {
    net->zero_grad();
    Backward({net->linear->bias});
    EXPECT_TRUE(AllEqual(net->linear->bias.grad(), rank() + 1));
  }
  DistributedOptimizer next = Distribute(net, MakeSgd, options());
  next.zero_grad();
  Loss(net, Shard(WholeBatch(0))).backward();
  next.step();
  ExpectSameOnAllRanks(*net);
}

TEST_P(GradientsTest, MovedOptimizerWorksAndKeepsItsInnerAddress) {
  Net net = MakeNet();
  DistributedOptimizer first = Distribute(net, MakeSgd, options());
  const torch::optim::Optimizer* const inner = &first.inner();
  Loss(net, Shard(WholeBatch(0))).backward();
  DistributedOptimizer second = std::move(first);
  EXPECT_EQ(&second.inner(), inner);
  EXPECT_THAT(ErrorText([&] { first.step(); }), HasSubstr("moved from"));
  first = std::move(second);
  first.step();
  Net alone = MakeNet();
  const auto optimizer_alone = MakeSgd(alone);
  Loss(alone, WholeBatch(0)).backward();
  optimizer_alone->step();
  ExpectClose(*net, *alone);
}

TEST(DistributedOptimizerTest, GivenGroupsHandleUnusedParameters) {
  for (const bool views : {false, true}) {
    std::vector<torch::Tensor> tensors;
    Parameters parameters;
    for (const char* name : {"a", "b", "c", "d"}) {
      tensors.push_back(torch::ones({3}).requires_grad_());
      parameters.insert(name, tensors.back());
    }
    DistributedOptimizer optimizer = DistributeSgd(
        parameters, Options().gradient_as_fusion_view(views).groups(
                        std::vector<std::vector<at::Tensor>>{
                            {tensors[3], tensors[0]}, {tensors[2]}}));
    for (int step = 0; step < 2; ++step) {
      Backward({tensors[0], tensors[1]});
      optimizer.step();
      for (const size_t i : {0, 1}) {
        EXPECT_TRUE(AllEqual(tensors[i].grad(), SumOfRanks() / size()));
      }
      for (const size_t i : {2, 3}) EXPECT_FALSE(tensors[i].grad().defined());
      optimizer.zero_grad();
    }
  }
}

TEST(DistributedOptimizerTest, LayoutThatDiffersAmongRanksIsAnError) {
  if (size() == 1) GTEST_SKIP() << "needs two ranks";
  Net net = MakeNet();
  if (IsLast()) {
    const torch::NoGradGuard no_grad;
    net->convolution->weight.set_data(
        net->convolution->weight.contiguous(torch::MemoryFormat::ChannelsLast));
  }
  DistributedOptimizer optimizer = Distribute(net);
  Loss(net, Shard(WholeBatch(0))).backward();
  ExpectSameError([&] { optimizer.step(); }, "convolution.weight");
  ExpectClose(*net, *MakeNet());
}

// The order in which gradients are complete does not matter.
TEST(DistributedOptimizerTest, FirstOfSeveralErrorsIsTheSameOnAllRanks) {
  if (size() == 1) GTEST_SKIP() << "needs two ranks";
  torch::Tensor one = torch::ones({IsLast() ? 4 : 3}).requires_grad_();
  torch::Tensor two = torch::ones({IsLast() ? 6 : 5}).requires_grad_();
  DistributedOptimizer optimizer = DistributeSgd({{"one", one}, {"two", two}});
  if (rank() == 0) Backward({one});
  Backward({two});
  if (rank() != 0) Backward({one});
  ExpectSameError([&] { optimizer.step(); }, "allreduce.one'");
}

TEST(DistributedOptimizerTest, MismatchNamesGroupAndParameter) {
  if (size() == 1) GTEST_SKIP() << "needs two ranks";
  Net net = MakeNet();
  if (IsLast()) net->linear->bias.set_data(torch::zeros({6}, torch::kDouble));
  DistributedOptimizer optimizer =
      Distribute(net, MakeSgd, Options().name("mine").groups(1));
  net->linear->bias.sum().backward();
  const std::string text = ErrorText([&] { optimizer.step(); });
  EXPECT_THAT(text, AllOf(HasSubstr("'mine.grouped_allreduce.0'"),
                          HasSubstr("tensor 3 of the group"),
                          HasSubstr("3 'linear.bias'"), HasSubstr("[6]")));
  EXPECT_EQ(text, broadcast_object(text, 0));
}

TEST(DistributedOptimizerTest, GroupsThatDifferAmongRanksAreAnError) {
  if (size() == 1) GTEST_SKIP() << "needs two ranks";
  Net net = MakeNet();
  std::vector<at::Tensor> group = net->parameters();
  if (rank() == 0) std::swap(group.front(), group.back());
  DistributedOptimizer optimizer =
      Distribute(net, MakeSgd,
                 Options().groups(std::vector<std::vector<at::Tensor>>{group}));
  Loss(net, Shard(WholeBatch(0))).backward();
  EXPECT_THAT(ErrorText([&] { optimizer.step(); }),
              HasSubstr("grouped_allreduce.0"));
}

TEST(DistributedOptimizerTest, StepsAreInTheTimeline) {
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
  const auto shares = timeline::SharesOf(*trace);
  ASSERT_TRUE(shares.has_value());
  EXPECT_EQ(shares->ranks, size());
  EXPECT_GT(shares->communicating, 0);
  ASSERT_TRUE(shares->exposed.has_value());
  EXPECT_GT(*shares->exposed, 0);
  const std::vector<timeline::RankStep> steps =
      timeline::AnalyzeSteps(*trace).steps;
  ASSERT_EQ(steps.size(), static_cast<size_t>(2 * size()));
  EXPECT_EQ(steps.front().work, 42);
  EXPECT_EQ(steps.back().work, -1);
  EXPECT_GE(steps.back().cpu_ns, 0);
  std::remove(path.c_str());
}

TEST(DistributedOptimizerTest, ClosureWithoutLossGetsTheOthersLoss) {
  Net net = MakeNet();
  DistributedOptimizer optimizer = Distribute(net);
  const torch::Tensor nobody = optimizer.step([] { return torch::Tensor(); });
  EXPECT_FALSE(nobody.defined());
  const torch::Tensor loss = optimizer.step(
      [] { return rank() == 0 ? torch::full({1}, 5.0f) : torch::Tensor(); });
  EXPECT_EQ(loss.item<double>(), 5);
  ExpectSameError(
      [&] {
        optimizer.step([] { return torch::zeros({rank() == 0 ? 2 : 1}); });
      },
      "return one real value");
}

DistributedOptimizer DistributeLbfgs(Net& net) {
  return Distribute(net, [](Net& model) {
    return std::make_unique<torch::optim::LBFGS>(
        model->parameters(), torch::optim::LBFGSOptions(0.1).max_iter(4));
  });
}

// LBFGS's second evaluation fails after it has changed the parameters.
TEST(DistributedOptimizerTest, StepThatThrowsLeavesParametersUnchanged) {
  Net net = MakeNet();
  DistributedOptimizer optimizer = DistributeLbfgs(net);
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

// The other ranks reduce their gradients in each of LBFGS's evaluations.
TEST(DistributedOptimizerTest, ClosureMayComputeNoGradientOnOneRank) {
  if (size() == 1) GTEST_SKIP() << "needs two ranks";
  Net net = MakeNet();
  DistributedOptimizer optimizer = DistributeLbfgs(net);
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

// Optimizers with the same names and ranks, and those of overlapping sets.
TEST(DistributedOptimizerTest, SeveralOptimizersDoNotClash) {
  const ProcessSet first = add_process_set({0});
  const ProcessSet even = EvenRanks();
  const ProcessSet sets[] = {first, even, ProcessSet(), ProcessSet()};
  std::vector<DistributedOptimizer> optimizers;
  std::vector<std::pair<Net, ProcessSet>> nets;
  for (const ProcessSet& set : sets) {
    if (!set.included()) continue;
    nets.emplace_back(MakeNet(), set);
    Net& net = nets.back().first;
    optimizers.push_back(Distribute(net, MakeSgd, Options().process_set(set)));
    Loss(net, Shard(WholeBatch(0, set.size()), set.rank())).backward();
  }
  // This rank uses the opposite order.
  for (; !optimizers.empty(); optimizers.pop_back()) optimizers.back().step();
  for (const auto& [net, set] : nets) {
    Net alone = MakeNet();
    const auto optimizer = MakeSgd(alone);
    TrainStep(alone, *optimizer, {WholeBatch(0, set.size())});
    ExpectClose(*net, *alone);
  }
  remove_process_set(even);
  remove_process_set(first);
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

}  // namespace
}  // namespace hvdlite
