// Mistakes after which the ranks train different models. A DistributedOptimizer
// finds them by comparing the parameters (HVDLITE_CHECK).
#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <hvdlite/hvdlite.h>
#include <torch/torch.h>

#include <cmath>
#include <functional>
#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "base/environment.h"
#include "tests/torch_plugin/same_error.h"
#include "tests/torch_plugin/small_net.h"

namespace hvdlite {
namespace {

using ::testing::AllOf;
using ::testing::HasSubstr;

void Backward(Net& net, int step) {
  Loss(net, Shard(WholeBatch(step))).backward();
}

// Takes steps [first, last), the same on all ranks.
void Train(Net& net, DistributedOptimizer& optimizer, int first, int last) {
  for (int step = first; step < last; ++step) {
    Backward(net, step);
    optimizer.step();
    optimizer.zero_grad();
  }
}

// "rank 1 has a different 'linear.weight' than rank 0", for the last rank.
std::string LastHasAnother(const std::string& tensor) {
  const std::string others =
      size() == 2 ? "rank 0" : "ranks 0-" + std::to_string(size() - 2);
  return "rank " + std::to_string(size() - 1) + " has a different '" + tensor +
         "' than " + others;
}

// Expects that `call` throws the same text, with these parts, on all ranks.
void ExpectDiffer(const std::function<void()>& call, const std::string& sides,
                  const std::string& step, const std::string& cause,
                  const ProcessSet& set = {}) {
  const std::string text = ErrorText(call);
  EXPECT_THAT(text, AllOf(HasSubstr(sides), HasSubstr(step), HasSubstr(cause)));
  EXPECT_EQ(text, broadcast_object(text, 0, set));
}

class ReplicaCheckTest : public ::testing::Test {
 protected:
  void SetUp() override {
    if (size() == 1) GTEST_SKIP() << "one rank has one replica";
  }
};

// A difference at the beginning may be intended.
bool IsStrict() {
  return base::ProcessEnvironment().get("HVDLITE_CHECK") == "every";
}

TEST_F(ReplicaCheckTest, NoBroadcastBeforeTheFirstStepIsAWarning) {
  Net net = MakeNet();
  if (IsLast()) {
    const torch::NoGradGuard no_grad;
    net->linear->weight[3][7] += 1e-9;
  }
  DistributedOptimizer optimizer = Distribute(net);
  if (IsStrict()) {
    const torch::Tensor before = net->linear->weight.detach().clone();
    Backward(net, 0);
    ExpectDiffer([&] { optimizer.step(); }, LastHasAnother("linear.weight"),
                 "before the update of step 1:", "no broadcast_parameters()");
    EXPECT_TRUE(net->linear->weight.equal(before));
    optimizer.zero_grad();
  } else {
    ::testing::internal::CaptureStderr();
    Train(net, optimizer, 0, 2);
    const std::string log = ::testing::internal::GetCapturedStderr();
    if (rank() == 0) {
      EXPECT_THAT(log, AllOf(HasSubstr(LastHasAnother("linear.weight")),
                             HasSubstr("before the update of step 1:"),
                             HasSubstr("before the update of step 2:"),
                             HasSubstr("no broadcast_parameters()")));
    } else {
      EXPECT_EQ(log, "");
    }
  }
  broadcast_parameters(*net, 0);
  Train(net, optimizer, 0, 3);
  ExpectSameOnAllRanks(*net);
}

TEST_F(ReplicaCheckTest, AnotherLearningRateOnOneRankIsFoundInTheSecondStep) {
  Net net = MakeNet();
  DistributedOptimizer optimizer = Distribute(net, [](Net& model) {
    return std::make_unique<torch::optim::SGD>(model->parameters(),
                                               IsLast() ? 0.1001 : 0.1);
  });
  Train(net, optimizer, 0, 1);
  Backward(net, 1);
  ExpectDiffer([&] { optimizer.step(); }, LastHasAnother("convolution.weight"),
               "before the update of step 2, but not before step 1",
               "another learning rate");
}

// Hooks of every rank reduce the gradients, but no rank uses the results.
TEST_F(ReplicaCheckTest, InnerStepOnAllRanksIsFoundInZeroGrad) {
  Net net = MakeNet();
  DistributedOptimizer optimizer = Distribute(net);
  ::testing::internal::CaptureStderr();
  const std::string text = ErrorText([&] {
    for (int step = 0; step < 2; ++step) {
      optimizer.zero_grad();
      Backward(net, step);
      // Set gradients of this rank alone, since the present ones may already be
      // reduced.
      for (torch::Tensor& parameter : net->parameters()) {
        parameter.mutable_grad() =
            torch::full_like(parameter, 0.1 * (1 + rank()));
      }
      optimizer.inner().step();
    }
    optimizer.zero_grad();
  });
  const std::string log = ::testing::internal::GetCapturedStderr();
  EXPECT_THAT(text, AllOf(HasSubstr("inner().step() instead of step()"),
                          HasSubstr("replicas of the model differ")));
  EXPECT_EQ(text, broadcast_object(text, 0));
  EXPECT_THAT(log, HasSubstr("reduced gradients were never used"));
}

TEST_F(ReplicaCheckTest, MistakeOfOneRankIsAnErrorOnAllRanks) {
  const struct {
    const char* name;
    // The actions of a step after backward().
    std::function<void(Net&, DistributedOptimizer&, int step)> run;
    std::vector<std::string> parts;
  } mistakes[] = {
      {"the inner optimizer's step",
       [](Net& /*net*/, DistributedOptimizer& optimizer, int /*step*/) {
         IsLast() ? optimizer.inner().step() : optimizer.step();
         optimizer.zero_grad();
       },
       {"inner().step() instead of step()"}},
      // If gradients are reduced before (for example to clip them), the number
      // of the step differs.
      {"the inner optimizer's step with reduced gradients",
       [](Net& /*net*/, DistributedOptimizer& optimizer, int /*step*/) {
         optimizer.synchronize();
         IsLast() ? optimizer.inner().step() : optimizer.step();
         optimizer.zero_grad();
       },
       {"the ranks are in different steps"}},
      {"a step that is skipped by an if",
       [](Net& net, DistributedOptimizer& optimizer, int step) {
         optimizer.synchronize();
         if (!IsLast() || step != 2) optimizer.step();
         net->zero_grad();
       },
       {"the ranks are in different steps"}},
      {"step() on all ranks, with gradients that one has thrown away",
       [](Net& net, DistributedOptimizer& optimizer, int step) {
         optimizer.synchronize();
         if (IsLast() && step == 4) net->zero_grad();
         optimizer.step();
         optimizer.zero_grad();
       },
       {LastHasAnother("convolution.weight"), "a skipped step"}},
  };
  for (const auto& [name, run, parts] : mistakes) {
    SCOPED_TRACE(name);
    Net net = MakeNet();
    DistributedOptimizer optimizer = Distribute(net);
    const std::string text = ErrorText([&, run = run] {
      for (int step = 0; step < 12; ++step) {
        Backward(net, step);
        run(net, optimizer, step);
      }
    });
    for (const std::string& part : parts) EXPECT_THAT(text, HasSubstr(part));
    EXPECT_EQ(text, broadcast_object(text, 0));
  }
}

TEST_F(ReplicaCheckTest, ComplexPartsAreComparedButAllNansAreEqual) {
  const torch::Tensor weight =
      torch::zeros({2}, torch::kComplexFloat).requires_grad_();
  const torch::Tensor parts = torch::view_as_real(weight.detach());
  parts[0][0] = std::copysign(std::nan(""), IsLast() ? -1.0 : 1.0);
  DistributedOptimizer optimizer = DistributeSgd({{"weight", weight}}, {}, 0.1);
  const auto train = [&](int steps) {
    for (int step = 0; step < steps; ++step) {
      weight.mutable_grad() = torch::zeros_like(weight);
      optimizer.step();
      optimizer.zero_grad();
    }
  };
  train(3);
  // Another part is NaN on all ranks.
  if (IsLast()) parts[0][1] = 1e-9;
  ExpectDiffer([&] { train(9); }, LastHasAnother("weight"),
               "but not before step", "");
}

TEST_F(ReplicaCheckTest, OneBitAnywhereIsFoundAfterSixteenPeriods) {
  // The check has 16 parts. The changed bit is in none that was checked before.
  const bool every = Config::from_env().check == "every";
  torch::Tensor parameter = torch::zeros({40'000}).requires_grad_();
  DistributedOptimizer optimizer =
      DistributeSgd({{"weight", parameter}}, {}, 0);
  const auto step = [&] {
    parameter.mutable_grad() = torch::zeros_like(parameter);
    optimizer.step();
    optimizer.zero_grad();
  };
  for (int i = 0; i < 150; ++i) step();
  if (IsLast()) {
    const torch::NoGradGuard no_grad;
    parameter[39'999] = -0.0;
  }
  std::string text = "nothing was thrown";
  for (int i = 0; i < 1600 && text == "nothing was thrown"; ++i) {
    text = ErrorText(step);
  }
  EXPECT_THAT(text, AllOf(HasSubstr(LastHasAnother("weight")),
                          HasSubstr(every ? "step 151," : "step 1501,")));
}

TEST_F(ReplicaCheckTest, DifferentBuffersAreFoundIfListed) {
  for (const bool asked : {false, true}) {
    SCOPED_TRACE(asked ? "asked" : "not asked");
    torch::nn::Sequential net(torch::nn::Linear(3, 4),
                              torch::nn::BatchNorm1d(4));
    broadcast_parameters(net, 0);
    DistributedOptimizerOptions options;
    if (asked) options.check_buffers(net->named_buffers());
    DistributedOptimizer optimizer =
        DistributeSgd(net->named_parameters(), options, 0.1);
    const std::string text = ErrorText([&] {
      for (int step = 0; step < 3; ++step) {
        torch::manual_seed(static_cast<uint64_t>(rank() + 10 * step));
        net->forward(torch::randn({6, 3})).sum().backward();
        optimizer.step();
        optimizer.zero_grad();
      }
    });
    if (asked) {
      EXPECT_THAT(text, AllOf(HasSubstr("'1.running_mean'"),
                              HasSubstr("SyncBatchNorm")));
    } else {
      EXPECT_EQ(text, "nothing was thrown");
    }
  }
}

TEST_F(ReplicaCheckTest, RanksThatJoinedNeedABroadcast) {
  Net net = MakeNet();
  DistributedOptimizer optimizer = Distribute(net);
  Train(net, optimizer, 0, IsLast() ? 5 : 3);
  const int last = join();
  EXPECT_EQ(last, size() - 1);
  Backward(net, 5);
  if (IsStrict()) {
    ExpectDiffer([&] { optimizer.step(); },
                 LastHasAnother("convolution.weight"),
                 "before the update of step 1:", "Ranks that have joined");
  } else {
    ::testing::internal::CaptureStderr();
    optimizer.step();
    EXPECT_THAT(::testing::internal::GetCapturedStderr(),
                HasSubstr(rank() == 0 ? "Ranks that have joined" : ""));
  }
  optimizer.zero_grad();
  broadcast_parameters(*net, last);
  Train(net, optimizer, 5, 8);
  ExpectSameOnAllRanks(*net);
}

TEST_F(ReplicaCheckTest, OnlyTheRanksOfItsProcessSetAreCompared) {
  const ProcessSet set = add_process_set({0, size() - 1});
  if (set.included()) {
    Net net = MakeNet();
    if (IsLast()) net->linear->bias.data().add_(1);
    DistributedOptimizer optimizer = Distribute(
        net, MakeSgd, DistributedOptimizerOptions().process_set(set));
    const auto backward = [&] {
      Loss(net, Shard(WholeBatch(0, 2), set.rank())).backward();
    };
    const std::string sides = "rank " + std::to_string(size() - 1) +
                              " has a different 'linear.bias' than rank 0";
    backward();
    if (IsStrict()) {
      ExpectDiffer([&] { optimizer.step(); }, sides,
                   "step 1:", "no broadcast_parameters()", set);
    } else {
      ::testing::internal::CaptureStderr();
      optimizer.step();
      EXPECT_THAT(::testing::internal::GetCapturedStderr(),
                  HasSubstr(rank() == 0 ? sides : ""));
    }
  }
  remove_process_set(set);
}

// This optimizer has only sparse gradients, which carry no step number.
TEST_F(ReplicaCheckTest, SparseGradientsOfDifferentStepsAreNotReducedTogether) {
  torch::manual_seed(3);
  torch::nn::Embedding net(torch::nn::EmbeddingOptions(9, 2).sparse(true));
  DistributedOptimizer optimizer =
      DistributeSgd(net->named_parameters(), {}, 0.1);
  const auto backward = [&] {
    net->forward(torch::tensor({1 + rank(), 2})).sum().backward();
  };
  for (int step = 0; step < 9; ++step) {
    backward();
    optimizer.step();
    optimizer.zero_grad();
  }
  backward();
  optimizer.synchronize();
  if (!IsLast()) optimizer.step();
  optimizer.zero_grad();
  backward();
  ExpectSameError([&] { optimizer.step(); },
                  "the ranks are in different steps");
  broadcast_parameters(*net, 0);
  optimizer.zero_grad();
  backward();
  optimizer.step();
  ExpectSameOnAllRanks(*net);
}

// training_equivalence_test.cc trains with every option and checks every step.
TEST(HealthyTrainingTest, NoErrorIfAllRanksSkipAStepAndOptimizersMove) {
  for (const bool views : {false, true}) {
    SCOPED_TRACE(views ? "with views" : "without views");
    Net net = MakeNet();
    Net second = MakeNet();
    const auto options = DistributedOptimizerOptions()
                             .backward_passes_per_step(2)
                             .gradient_as_fusion_view(views)
                             .groups(views ? 2 : 0);
    DistributedOptimizer optimizer = Distribute(
        net,
        [](Net& model) {
          return std::make_unique<torch::optim::Adam>(model->parameters(),
                                                      1e-3);
        },
        options);
    DistributedOptimizer other = Distribute(second);
    ::testing::internal::CaptureStderr();
    for (int step = 0; step < 13; ++step) {
      for (int pass = 0; pass < 2; ++pass) Backward(net, step);
      optimizer.synchronize();
      torch::nn::utils::clip_grad_norm_(net->parameters(), 0.5);
      if (step != 5) optimizer.step();
      optimizer.zero_grad(/*set_to_none=*/step % 2 == 0);
      Train(second, other, step, step + 1);
      if (step == 7) {
        DistributedOptimizer moved = std::move(other);
        other = std::move(moved);
      }
    }
    EXPECT_EQ(::testing::internal::GetCapturedStderr(), "");
    ExpectSameOnAllRanks(*net);
    ExpectSameOnAllRanks(*second);
  }
}

TEST(HealthyTrainingTest, NoErrorForSparseFrozenAndNanParameters) {
  for (const bool as_dense : {false, true}) {
    SCOPED_TRACE(as_dense ? "as dense" : "sparse");
    torch::manual_seed(3);
    torch::nn::Sequential net(
        torch::nn::Embedding(torch::nn::EmbeddingOptions(9, 2).sparse(true)),
        torch::nn::Linear(2, 3));
    net[1]->named_parameters()["bias"].set_requires_grad(false);
    net[1]->named_parameters()["bias"].data().fill_(std::nan(""));
    DistributedOptimizer optimizer = DistributeSgd(
        net->named_parameters(),
        DistributedOptimizerOptions().sparse_as_dense(as_dense), 0.1);
    for (int step = 0; step < 12; ++step) {
      torch::Tensor rows = torch::tensor({1 + rank(), step % 9});
      net[0]->as<torch::nn::Embedding>()->forward(rows).sum().backward();
      optimizer.step();
      optimizer.zero_grad();
    }
    ExpectSameOnAllRanks(*net[0]->as<torch::nn::Embedding>());
  }
}

TEST(HealthyTrainingTest, NoErrorIfZeroGradDropsGradientsOnAllRanks) {
  Net net = MakeNet();
  DistributedOptimizer optimizer = Distribute(net);
  ::testing::internal::CaptureStderr();
  for (int step = 0; step < 12; ++step) {
    Backward(net, step);
    if (step % 3 != 0) optimizer.step();
    optimizer.zero_grad();
  }
  EXPECT_EQ(::testing::internal::GetCapturedStderr(), "");
  ExpectSameOnAllRanks(*net);
}

}  // namespace
}  // namespace hvdlite
