// Steps that all ranks skip because of an event on one rank.
#include <gtest/gtest.h>
#include <hvdlite/hvdlite.h>
#include <torch/torch.h>

#include <memory>
#include <stdexcept>

#include "tests/torch_plugin/same_error.h"
#include "tests/torch_plugin/small_net.h"

namespace hvdlite {
namespace {

using torch::autograd::AutogradContext;
using torch::autograd::variable_list;

// Returns the tensor itself; its backward() throws.
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

// Trains one net on all ranks and one on this rank alone.
class SkippedStepTest : public EveryWayTest {
 protected:
  // Takes three steps, starting with step `first`.
  void ExpectTrainsLikeAlone(DistributedOptimizer& optimizer, int first,
                             int64_t passes = 1) {
    for (int step = first; step < first + 3; ++step) {
      for (int pass = 0; pass < passes; ++pass) {
        Loss(net, Shard(WholeBatch(step))).backward();
      }
      optimizer.step();
      optimizer.zero_grad();
      optimizer_alone->zero_grad();
      (Loss(alone, WholeBatch(step)) * passes).backward();
      optimizer_alone->step();
      ExpectClose(*net, *alone);
    }
    ExpectSameOnAllRanks(*net);
  }

  Net net = MakeNet();
  Net alone = MakeNet();
  const std::unique_ptr<torch::optim::Optimizer> optimizer_alone =
      MakeSgd(alone);
};

INSTANTIATE_TEST_SUITE_P(, SkippedStepTest, EveryWay());

// Step 1 fails on the last rank; if there are two passes, in the first one.
TEST_P(SkippedStepTest, BackwardThatThrowsOnOneRank) {
  for (const Failure failure :
       {Failure::kAtTheBeginning, Failure::kInTheMiddle}) {
    for (const int64_t passes : {1, 2}) {
      net = MakeNet();
      alone = MakeNet();
      const auto sgd_alone = MakeSgd(alone);
      DistributedOptimizer optimizer =
          Distribute(net, MakeSgd, options().backward_passes_per_step(passes));
      for (int step = 0; step < 4; ++step) {
        const Batch batch = WholeBatch(step);
        const bool fails = step == 1 && IsLast();
        bool failed =
            !Backward(net, Shard(batch), fails ? failure : Failure::kNone);
        EXPECT_EQ(failed, fails);
        if (passes == 2 && !failed) {
          failed = !Backward(net, Shard(batch), Failure::kNone);
        }
        const bool skip = allreduce(torch::tensor(failed ? 1 : 0),
                                    AllreduceOptions().op(ReduceOp::Max))
                              .item<bool>();
        EXPECT_EQ(skip, step == 1);
        skip ? optimizer.synchronize() : static_cast<void>(optimizer.step());
        optimizer.zero_grad();
        if (skip) continue;
        sgd_alone->zero_grad();
        (Loss(alone, batch) * passes).backward();
        sgd_alone->step();
        ExpectClose(*net, *alone);
      }
      ExpectSameOnAllRanks(*net);
    }
  }
}

TEST_P(SkippedStepTest, MissingBackwardOnOneRank) {
  DistributedOptimizer optimizer = Distribute(net, MakeSgd, options());
  if (!IsLast()) net->linear->bias.sum().backward();
  optimizer.synchronize();
  optimizer.zero_grad();
  net->linear->bias.sum().backward();
  optimizer.synchronize();
  EXPECT_TRUE(torch::allclose(net->linear->bias.grad(),
                              torch::ones({5}, torch::kDouble)));
}

constexpr char kDifferentSteps[] = "the ranks are in different steps";

// The last rank's backward() fails after some gradients. It skips the step that
// the others take.
TEST_P(SkippedStepTest, OneRankThatSkipsIsFoundInTheNextStep) {
  if (size() == 1) GTEST_SKIP() << "needs two ranks";
  DistributedOptimizer optimizer = Distribute(net, MakeSgd, options());
  ExpectTrainsLikeAlone(optimizer, 0);
  EXPECT_EQ(Backward(net, Shard(WholeBatch(3)),
                     IsLast() ? Failure::kInTheMiddle : Failure::kNone),
            !IsLast());
  if (!IsLast()) optimizer.step();
  optimizer.zero_grad();
  Loss(net, Shard(WholeBatch(4))).backward();
  ExpectSameError([&] { optimizer.step(); }, kDifferentSteps);
  // The last rank has the parameters that all had before.
  broadcast_parameters(*net, size() - 1);
  optimizer.zero_grad();
  ExpectTrainsLikeAlone(optimizer, 4);
}

// The second of two passes fails on the last rank, which begins the next step.
// Its gradients must not be added to those of the others' present step.
TEST_P(SkippedStepTest, GradientsOfDifferentStepsAreNotReducedTogether) {
  if (size() == 1) GTEST_SKIP() << "needs two ranks";
  DistributedOptimizer optimizer =
      Distribute(net, MakeSgd, options().backward_passes_per_step(2));
  ExpectTrainsLikeAlone(optimizer, 0, 2);
  EXPECT_TRUE(Backward(net, Shard(WholeBatch(3)), Failure::kNone));
  EXPECT_EQ(Backward(net, Shard(WholeBatch(3)),
                     IsLast() ? Failure::kAtTheBeginning : Failure::kNone),
            !IsLast());
  if (IsLast()) {
    optimizer.zero_grad();
    for (int pass = 0; pass < 2; ++pass) {
      Loss(net, Shard(WholeBatch(4))).backward();
    }
  }
  ExpectSameError([&] { optimizer.step(); }, kDifferentSteps);
  optimizer.zero_grad();
  ExpectTrainsLikeAlone(optimizer, 5, 2);
}

// The same, but the last rank synchronizes once more than the others.
TEST_P(SkippedStepTest, ARankThatRepeatsAReductionIsFoundToo) {
  if (size() == 1) GTEST_SKIP() << "needs two ranks";
  DistributedOptimizer optimizer = Distribute(net, MakeSgd, options());
  ExpectTrainsLikeAlone(optimizer, 0);
  Loss(net, Shard(WholeBatch(3))).backward();
  optimizer.synchronize();
  if (!IsLast()) {
    optimizer.step();
    optimizer.zero_grad();
    Loss(net, Shard(WholeBatch(4))).backward();
  }
  ExpectSameError([&] { optimizer.synchronize(); }, kDifferentSteps);
  broadcast_parameters(*net, size() - 1);
  optimizer.zero_grad();
  ExpectTrainsLikeAlone(optimizer, 4);
}

TEST_P(SkippedStepTest, ZeroGradWithoutGradientsDoesNotCount) {
  DistributedOptimizer optimizer = Distribute(net, MakeSgd, options());
  for (int step = 0; step < 9; step += 3) {
    if (rank() == 0) optimizer.zero_grad();
    ExpectTrainsLikeAlone(optimizer, step);
    if (IsLast()) {
      optimizer.zero_grad();
      optimizer.zero_grad(/*set_to_none=*/false);
    }
  }
}

// Ranks that have joined take fewer steps than the others.
TEST_P(SkippedStepTest, StepsAreTheSameAgainAfterAJoin) {
  DistributedOptimizer optimizer = Distribute(net, MakeSgd, options());
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
