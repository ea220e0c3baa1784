// Steps that all ranks skip because of what happened on one.
#include <gtest/gtest.h>
#include <hvdlite/hvdlite.h>
#include <torch/torch.h>

#include <stdexcept>

#include "tests/torch_plugin/small_net.h"

namespace hvdlite {
namespace {

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

}  // namespace
}  // namespace hvdlite
