// Every optimizer of LibTorch on shards of a batch against one process on the
// whole batch, on any number of ranks and with every option.
#include <gtest/gtest.h>
#include <hvdlite/hvdlite.h>
#include <torch/torch.h>

#include <memory>
#include <ostream>
#include <utility>
#include <vector>

#include "tests/torch_plugin/compression_rounds.h"
#include "tests/torch_plugin/small_net.h"

namespace hvdlite {
namespace {

struct NamedOptimizer {
  const char* name;
  MakeOptimizer make;
  // Iterations amplify what the order of additions makes of the last bits.
  double tolerance = 1e-8;
};

std::ostream& operator<<(std::ostream& stream, const NamedOptimizer& named) {
  return stream << named.name;
}

template <typename Optimizer, typename Options>
NamedOptimizer Named(const char* name, Options options,
                     double tolerance = 1e-8) {
  return {name,
          [options](Net& net) {
            return std::make_unique<Optimizer>(net->parameters(), options);
          },
          tolerance};
}

std::vector<NamedOptimizer> AllOptimizers() {
  using namespace torch::optim;
  return {
      Named<SGD>("Sgd", SGDOptions(0.1)),
      Named<SGD>("Momentum", SGDOptions(0.1).momentum(0.9).weight_decay(0.01)),
      Named<SGD>("Nesterov", SGDOptions(0.1).momentum(0.9).nesterov(true)),
      Named<Adam>("Adam", AdamOptions(0.01)),
      Named<Adam>("Amsgrad", AdamOptions(0.01).amsgrad(true).weight_decay(0.1)),
      Named<AdamW>("AdamW", AdamWOptions(0.01).weight_decay(0.1)),
      Named<RMSprop>("RMSprop", RMSpropOptions(0.01)),
      Named<RMSprop>("CenteredRMSprop",
                     RMSpropOptions(0.01).centered(true).momentum(0.9), 1e-6),
      Named<Adagrad>("Adagrad", AdagradOptions(0.01).lr_decay(0.1)),
      Named<LBFGS>("Lbfgs", LBFGSOptions(0.1).max_iter(4), 1e-6),
      Named<LBFGS>("LbfgsWithLineSearch",
                   LBFGSOptions(1).max_iter(4).line_search_fn("strong_wolfe"),
                   1e-6),
  };
}

class TrainingEquivalenceTest
    : public ::testing::TestWithParam<NamedOptimizer> {
 protected:
  void Expect(const DistributedOptimizerOptions& options = {}) {
    ExpectTrainsAsOneProcess(GetParam().make, MakeNet(), options,
                             GetParam().tolerance);
  }
};

using Options = DistributedOptimizerOptions;

TEST_P(TrainingEquivalenceTest, TrainsAsOneProcess) { Expect(); }

TEST_P(TrainingEquivalenceTest, InGroups) { Expect(Options().groups(2)); }

TEST_P(TrainingEquivalenceTest, WithSeveralBackwardPasses) {
  Expect(Options().backward_passes_per_step(3).groups(1));
}

TEST_P(TrainingEquivalenceTest, InAProcessSet) {
  const ProcessSet even = EvenRanks();
  if (even.included()) Expect(Options().process_set(even).groups(2));
  remove_process_set(even);
}

INSTANTIATE_TEST_SUITE_P(, TrainingEquivalenceTest,
                         ::testing::ValuesIn(AllOptimizers()),
                         [](const auto& info) {
                           return std::string(info.param.name);
                         });

TEST(TrainingTest, SumTrainsAsOneProcess) {
  ExpectTrainsAsOneProcess(MakeSgd, MakeNet(), Options().op(ReduceOp::Sum));
  ExpectTrainsAsOneProcess(MakeSgd, MakeNet(),
                           Options().op(ReduceOp::Sum).groups(1));
}

TEST(TrainingTest, PredividedAverageTrainsAsOneProcess) {
  for (const double factor : {0.5, 2.0, 1e6}) {
    const Options options = Options().gradient_predivide_factor(factor);
    ExpectTrainsAsOneProcess(MakeSgd, MakeNet(), options);
    ExpectTrainsAsOneProcess(MakeSgd, MakeNet(), Options(options).groups(2));
  }
}

TEST(TrainingTest, ExplicitGroupsTrainAsOneProcess) {
  Net net = MakeNet();
  ExpectTrainsAsOneProcess(
      MakeSgd, net,
      Options().groups(std::vector<std::vector<at::Tensor>>{
          {net->linear->weight, net->convolution->bias}}));
}

TEST(TrainingTest, ChannelsLastParametersTrainAsOneProcess) {
  for (const int64_t groups : {0, 1}) {
    Net net = MakeNet();
    {
      const torch::NoGradGuard no_grad;
      net->convolution->weight.set_data(net->convolution->weight.contiguous(
          torch::MemoryFormat::ChannelsLast));
    }
    ASSERT_FALSE(net->convolution->weight.is_contiguous());
    ExpectTrainsAsOneProcess(MakeSgd, net, Options().groups(groups));
  }
}

TEST(TrainingTest, CompressedGradientsTrainAlmostAsOneProcess) {
  for (const Compression compression : {Compression::FP16, Compression::BF16}) {
    for (const int64_t groups : {0, 2}) {
      Net exact = MakeNet();
      Net net = MakeNet();
      DistributedOptimizer exact_optimizer = Distribute(exact);
      DistributedOptimizer optimizer = Distribute(
          net, MakeSgd, Options().compression(compression).groups(groups));
      for (int step = 0; step < 3; ++step) {
        const Batch shard = Shard(WholeBatch(step));
        TrainStep(exact, exact_optimizer, {shard});
        TrainStep(net, optimizer, {shard});
      }
      ExpectSameOnAllRanks(*net);
      const torch::Tensor difference =
          (net->linear->weight - exact->linear->weight).abs().max();
      EXPECT_LT(difference.item<double>(), 2e-3);
      // 16 bits do lose something.
      EXPECT_EQ(difference.item<double>() > 0, testing::CompressionRounds());
    }
  }
}

TEST(TrainingTest, AdasumAveragesEqualGradientsAndAddsOrthogonalOnes) {
  for (const int64_t groups : {0, 1}) {
    torch::Tensor equal = torch::zeros({8}, torch::kDouble).requires_grad_();
    torch::Tensor orthogonal = torch::zeros({8}).requires_grad_();
    torch::OrderedDict<std::string, torch::Tensor> parameters;
    parameters.insert("equal", equal);
    parameters.insert("orthogonal", orthogonal);
    DistributedOptimizer optimizer(
        std::make_unique<torch::optim::SGD>(parameters.values(), 1.0),
        parameters, Options().op(ReduceOp::Adasum).groups(groups));
    (equal.sum() + orthogonal[rank()] * (rank() + 1)).backward();
    optimizer.synchronize();
    EXPECT_TRUE(torch::allclose(equal.grad(), torch::ones_like(equal)))
        << equal.grad();
    torch::Tensor expected = torch::zeros({8});
    for (int i = 0; i < size(); ++i) expected[i] = i + 1;
    EXPECT_TRUE(torch::allclose(orthogonal.grad(), expected))
        << orthogonal.grad();
  }
}

}  // namespace
}  // namespace hvdlite
