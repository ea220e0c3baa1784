// Steps that all ranks skip because of what happened on one.
#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <hvdlite/hvdlite.h>
#include <torch/torch.h>

#include <functional>
#include <stdexcept>
#include <string>

#include "tests/torch_plugin/small_net.h"

namespace hvdlite {
namespace {

using ::testing::AllOf;
using ::testing::HasSubstr;
using torch::autograd::AutogradContext;
using torch::autograd::variable_list;

// The tensor itself; backward() throws.
struct FailingBackward : torch::autograd::Function<FailingBackward> {
  static torch::Tensor forward(AutogradContext* /*context*/,
                               const torch::Tensor& tensor) {
    return tensor.clone();
  }
  static variable_list backward(AutogradContext* /*context*/,
                                const variable_list& /*gradients*/) {
    throw std::runtime_error("no gradient");
  }
};

enum class Failure { kNone, kAtTheBeginning, kInTheMiddle };

// Whether backward() succeeded.
bool Backward(Net& net, const Batch& batch, Failure failure) {
  torch::Tensor hidden = torch::relu(net->convolution->forward(batch.input));
  if (failure == Failure::kInTheMiddle) hidden = FailingBackward::apply(hidden);
  torch::Tensor loss =
      torch::mse_loss(net->linear->forward(hidden.flatten(1)), batch.target);
  if (failure == Failure::kAtTheBeginning) loss = FailingBackward::apply(loss);
  try {
    loss.backward();
    return true;
  } catch (const std::exception&) {
    return false;
  }
}

// Step 1 fails on the last rank, in the first of two passes if there are two.
void ExpectSkipsTheFailedStep(Failure failure,
                              const DistributedOptimizerOptions& options) {
  const bool two_passes = options.backward_passes_per_step() == 2;
  Net net = MakeNet();
  Net alone = MakeNet();
  DistributedOptimizer optimizer = Distribute(net, MakeSgd, options);
  const auto optimizer_alone = MakeSgd(alone);
  for (int step = 0; step < 4; ++step) {
    const Batch batch = WholeBatch(step);
    const bool fails = step == 1 && rank() == size() - 1;
    bool failed =
        !Backward(net, Shard(batch), fails ? failure : Failure::kNone);
    EXPECT_EQ(failed, fails);
    if (two_passes && !failed) {
      failed = !Backward(net, Shard(batch), Failure::kNone);
    }
    const bool skip = allreduce(torch::tensor(failed ? 1 : 0),
                                AllreduceOptions().op(ReduceOp::Max))
                          .item<bool>();
    EXPECT_EQ(skip, step == 1);
    if (skip) {
      optimizer.synchronize();
      optimizer.zero_grad();
      continue;
    }
    optimizer.step();
    optimizer.zero_grad();
    optimizer_alone->zero_grad();
    (Loss(alone, batch) * (two_passes ? 2 : 1)).backward();
    optimizer_alone->step();
    ExpectClose(*net, *alone);
  }
  ExpectSameOnAllRanks(*net);
}

TEST(SkippedStepTest, BackwardThatThrowsOnOneRank) {
  for (const Failure failure :
       {Failure::kAtTheBeginning, Failure::kInTheMiddle}) {
    for (const int64_t groups : {0, 1}) {
      for (const int64_t passes : {1, 2}) {
        for (const bool views : {false, true}) {
          ExpectSkipsTheFailedStep(failure,
                                   DistributedOptimizerOptions()
                                       .groups(groups)
                                       .backward_passes_per_step(passes)
                                       .gradient_as_fusion_view(views));
        }
      }
    }
  }
}

TEST(SkippedStepTest, BackwardThatDoesNotHappenOnOneRank) {
  Net net = MakeNet();
  DistributedOptimizer optimizer = Distribute(net);
  for (int step = 0; step < 2; ++step) {
    if (step == 1 || rank() != size() - 1) net->linear->bias.sum().backward();
    if (step == 1) break;
    optimizer.synchronize();
    optimizer.zero_grad();
  }
  optimizer.synchronize();
  EXPECT_TRUE(net->linear->bias.grad().eq(1).all().item<bool>());
}

// The same text on all ranks says that they are in different steps.
void ExpectDifferentSteps(const std::function<void()>& call) {
  std::string text;
  try {
    call();
  } catch (const c10::Error& error) {
    text = error.what_without_backtrace();
  }
  EXPECT_THAT(text, AllOf(HasSubstr("the ranks are in different steps"),
                          HasSubstr("zero_grad()")));
  EXPECT_EQ(text, broadcast_object(text, 0));
}

// Some steps, from number `first` on.
void ExpectTrainsLikeAlone(Net& net, DistributedOptimizer& optimizer,
                           Net& alone, torch::optim::Optimizer& optimizer_alone,
                           int first, int64_t passes) {
  for (int step = first; step < first + 3; ++step) {
    const Batch batch = WholeBatch(step);
    for (int pass = 0; pass < passes; ++pass) {
      Loss(net, Shard(batch)).backward();
    }
    optimizer.step();
    optimizer.zero_grad();
    optimizer_alone.zero_grad();
    (Loss(alone, batch) * passes).backward();
    optimizer_alone.step();
    ExpectClose(*net, *alone);
  }
  ExpectSameOnAllRanks(*net);
}

// The last rank's backward() fails after some gradients; it skips the step that
// the others take.
TEST(SkippedStepTest, ARankThatSkipsAloneIsFoundInTheNextStep) {
  if (size() == 1) GTEST_SKIP() << "nobody is left behind";
  for (const int64_t groups : {0, 1}) {
    Net net = MakeNet();
    Net alone = MakeNet();
    DistributedOptimizer optimizer =
        Distribute(net, MakeSgd, DistributedOptimizerOptions().groups(groups));
    const auto optimizer_alone = MakeSgd(alone);
    ExpectTrainsLikeAlone(net, optimizer, alone, *optimizer_alone, 0, 1);
    const bool fails = rank() == size() - 1;
    EXPECT_EQ(Backward(net, Shard(WholeBatch(3)),
                       fails ? Failure::kInTheMiddle : Failure::kNone),
              !fails);
    if (!fails) optimizer.step();
    optimizer.zero_grad();
    Loss(net, Shard(WholeBatch(4))).backward();
    ExpectDifferentSteps([&] { optimizer.step(); });
    // The last rank has what all had before.
    broadcast_parameters(*net, size() - 1);
    optimizer.zero_grad();
    ExpectTrainsLikeAlone(net, optimizer, alone, *optimizer_alone, 4, 1);
  }
}

// The second of two passes fails on the last rank, which begins the next step:
// its gradients would be added to the others' of this one.
TEST(SkippedStepTest, GradientsOfDifferentStepsDoNotMeet) {
  if (size() == 1) GTEST_SKIP() << "nobody is left behind";
  for (const int64_t groups : {0, 1}) {
    Net net = MakeNet();
    Net alone = MakeNet();
    DistributedOptimizer optimizer = Distribute(
        net, MakeSgd,
        DistributedOptimizerOptions().groups(groups).backward_passes_per_step(
            2));
    const auto optimizer_alone = MakeSgd(alone);
    ExpectTrainsLikeAlone(net, optimizer, alone, *optimizer_alone, 0, 2);
    const bool fails = rank() == size() - 1;
    EXPECT_TRUE(Backward(net, Shard(WholeBatch(3)), Failure::kNone));
    EXPECT_EQ(Backward(net, Shard(WholeBatch(3)),
                       fails ? Failure::kAtTheBeginning : Failure::kNone),
              !fails);
    if (fails) {
      optimizer.zero_grad();
      for (int pass = 0; pass < 2; ++pass) {
        Loss(net, Shard(WholeBatch(4))).backward();
      }
    }
    ExpectDifferentSteps([&] { optimizer.step(); });
    optimizer.zero_grad();
    ExpectTrainsLikeAlone(net, optimizer, alone, *optimizer_alone, 5, 2);
  }
}

// As above, but it synchronizes once more than the others.
TEST(SkippedStepTest, ARankThatRepeatsAReductionIsFoundToo) {
  if (size() == 1) GTEST_SKIP() << "nobody is left behind";
  Net net = MakeNet();
  Net alone = MakeNet();
  DistributedOptimizer optimizer = Distribute(net);
  const auto optimizer_alone = MakeSgd(alone);
  ExpectTrainsLikeAlone(net, optimizer, alone, *optimizer_alone, 0, 1);
  Loss(net, Shard(WholeBatch(3))).backward();
  optimizer.synchronize();
  if (rank() != size() - 1) {
    optimizer.step();
    optimizer.zero_grad();
    Loss(net, Shard(WholeBatch(4))).backward();
  }
  ExpectDifferentSteps([&] { optimizer.synchronize(); });
  broadcast_parameters(*net, size() - 1);
  optimizer.zero_grad();
  ExpectTrainsLikeAlone(net, optimizer, alone, *optimizer_alone, 4, 1);
}

TEST(SkippedStepTest, ZeroGradWithoutGradientsDoesNotCount) {
  Net net = MakeNet();
  Net alone = MakeNet();
  DistributedOptimizer optimizer = Distribute(net);
  const auto optimizer_alone = MakeSgd(alone);
  for (int step = 0; step < 9; step += 3) {
    if (rank() == 0) optimizer.zero_grad();
    ExpectTrainsLikeAlone(net, optimizer, alone, *optimizer_alone, step, 1);
    if (rank() == size() - 1) {
      optimizer.zero_grad();
      optimizer.zero_grad(/*set_to_none=*/false);
    }
  }
}

// Ranks that have joined take fewer steps than the others.
TEST(SkippedStepTest, StepsAreTheSameAgainAfterAJoin) {
  Net net = MakeNet();
  DistributedOptimizer optimizer = Distribute(net);
  for (int epoch = 0; epoch < 2; ++epoch) {
    for (int step = 0; step <= rank(); ++step) {
      Loss(net, Shard(WholeBatch(step))).backward();
      optimizer.step();
      optimizer.zero_grad();
    }
    join();
    broadcast_parameters(*net, size() - 1);
    ExpectSameOnAllRanks(*net);
  }
}

}  // namespace
}  // namespace hvdlite
