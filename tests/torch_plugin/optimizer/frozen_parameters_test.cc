// Parameters that are frozen and unfrozen during training, or never have a
// gradient, on any number of ranks. training_equivalence_test.cc trains
// FreezingModel.
#include <gtest/gtest.h>
#include <hvdlite/hvdlite.h>
#include <torch/torch.h>

#include <memory>

#include "tests/torch_plugin/error_text.h"
#include "tests/torch_plugin/training_models.h"

namespace hvdlite {
namespace {

class FrozenParametersTest : public EveryWayTest {};

INSTANTIATE_TEST_SUITE_P(, FrozenParametersTest, EveryWay());

// Each optimizer has one part of the model and freezes the other part.
TEST_P(FrozenParametersTest, OptimizersThatTakeTurnsTrainAsOneProcess) {
  Net net = MakeNet();
  Net alone = MakeNet();
  const auto optimizer_of = [](const torch::nn::Module& part) {
    return std::make_unique<torch::optim::SGD>(
        part.parameters(), torch::optim::SGDOptions(0.1).momentum(0.5));
  };
  torch::nn::Module* const parts[] = {net->convolution.get(),
                                      net->linear.get()};
  torch::nn::Module* const parts_alone[] = {alone->convolution.get(),
                                            alone->linear.get()};
  std::vector<DistributedOptimizer> optimizers;
  std::vector<std::unique_ptr<torch::optim::SGD>> optimizers_alone;
  for (int part = 0; part < 2; ++part) {
    optimizers.emplace_back(optimizer_of(*parts[part]),
                            parts[part]->named_parameters(), options());
    optimizers_alone.push_back(optimizer_of(*parts_alone[part]));
  }
  for (int step = 0; step < 6; ++step) {
    const size_t turn = static_cast<size_t>(step) % 2;
    for (size_t part = 0; part < 2; ++part) {
      Freeze(*parts[part], part != turn);
      Freeze(*parts_alone[part], part != turn);
      optimizers[part].zero_grad();
    }
    Loss(net, Shard(WholeBatch(step))).backward();
    EXPECT_EQ(net->linear->bias.grad().defined(), turn == 1);
    optimizers[turn].step();
    DropGradients(*alone);
    Loss(alone, WholeBatch(step)).backward();
    optimizers_alone[turn]->step();
    ExpectClose(*net, *alone);
  }
}

// The other ranks contribute zeros and get the result.
TEST_P(FrozenParametersTest, ParameterFrozenOnSomeRanksGetsTheOthersGradient) {
  Net net = MakeNet();
  DistributedOptimizer optimizer = Distribute(net, MakeSgd, options());
  torch::Tensor& bias = net->convolution->bias;
  for (int step = 0; step < 4; ++step) {
    const bool frozen = rank() != 0 && step % 2 == 0;
    Freeze(*net->convolution, frozen);
    optimizer.zero_grad();
    torch::Tensor sum = net->linear->bias.sum();
    if (!frozen) sum = sum + bias.sum();
    sum.backward();
    optimizer.step();
    ASSERT_TRUE(bias.grad().defined());
    EXPECT_TRUE(torch::allclose(
        bias.grad(),
        torch::full_like(bias, step % 2 == 0 ? 1.0 / size() : 1.0)));
    EXPECT_FALSE(net->linear->weight.grad().defined());
    ExpectSameOnAllRanks(*net);
  }
}

// The parameter has hooks from the next step on.
TEST_P(FrozenParametersTest, UnfrozenParameterGetsHooks) {
  Net net = MakeNet();
  Freeze(*net->convolution, true);
  DistributedOptimizer optimizer = Distribute(net, MakeSgd, options());
  Freeze(*net->convolution, false);
  optimizer.zero_grad();
  Loss(net, Shard(WholeBatch(0))).backward();
  EXPECT_NE(ErrorText([&] { net->convolution->bias.sum().backward(); }),
            "nothing was thrown");
  optimizer.step();
}

struct MaskedModel : torch::nn::Module {
  torch::Tensor index = register_parameter(
      "index", torch::tensor({1, 3}, torch::kInt) - (rank() == 0 ? 0 : 1),
      /*requires_grad=*/false);
  torch::Tensor mask =
      register_parameter("mask", torch::full({4}, rank() == 0, torch::kBool),
                         /*requires_grad=*/false);
  torch::Tensor weight = register_parameter(
      "weight", torch::full({4}, 1.0 + rank(), torch::kDouble));
};

// Integers and flags cannot have a gradient.
TEST_P(FrozenParametersTest, ParametersWithoutGradientMayHaveAnyDtype) {
  MaskedModel model;
  broadcast_parameters(model, 0);
  DistributedOptimizer optimizer(
      std::make_unique<torch::optim::SGD>(
          model.parameters(),
          torch::optim::SGDOptions(0.5).momentum(0.9).weight_decay(0.1)),
      model.named_parameters(), options());
  broadcast_optimizer_state(optimizer, 0);
  Backward(
      {(model.weight * model.mask).index_select(0, model.index.to(at::kLong))});
  optimizer.synchronize();
  EXPECT_FALSE(model.index.grad().defined());
  EXPECT_FALSE(model.mask.grad().defined());
  const double average = SumOfRanks() / size();
  EXPECT_TRUE(torch::allclose(
      model.weight.grad(),
      torch::tensor({0.0, average, 0.0, average}, torch::kDouble)));
  optimizer.step();
  broadcast_optimizer_state(optimizer, 0);
  EXPECT_TRUE(model.index.equal(torch::tensor({1, 3}, torch::kInt)));
  EXPECT_TRUE(model.mask.all().item<bool>());
  ExpectSameOnAllRanks(model);
}

}  // namespace
}  // namespace hvdlite
