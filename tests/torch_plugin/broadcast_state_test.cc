// Broadcasting models and optimizers, on any number of ranks.
#include <gtest/gtest.h>
#include <hvdlite/hvdlite.h>
#include <torch/torch.h>

#include <memory>
#include <utility>

#include "tests/torch_plugin/small_net.h"

namespace hvdlite {
namespace {

TEST(BroadcastStateTest, ParametersAndBuffersOfAModule) {
  torch::manual_seed(static_cast<uint64_t>(rank()));
  torch::nn::Sequential model(torch::nn::Linear(3, 4),
                              torch::nn::BatchNorm1d(4));
  model->forward(torch::randn({8, 3}));
  const int root = size() - 1;
  broadcast_parameters(model, root);
  for (const auto& tensors : {model->parameters(), model->buffers()}) {
    for (const torch::Tensor& tensor : tensors) {
      EXPECT_TRUE(broadcast(tensor.detach(), root).equal(tensor));
    }
  }
  // And of another model with other shapes under the same names.
  torch::nn::Sequential other(torch::nn::Linear(2, 2),
                              torch::nn::BatchNorm1d(2));
  broadcast_parameters(*other, 0);
  broadcast_parameters(other->named_parameters(), 0);
  ExpectSameOnAllRanks(*other);
}

TEST(BroadcastStateTest, OptimizerStateThatOnlyTheRootHas) {
  Net net = MakeNet();
  auto optimizer = std::make_unique<torch::optim::SGD>(
      net->parameters(),
      torch::optim::SGDOptions(0.1 * (rank() + 1)).momentum(0.9));
  if (rank() == 0) {
    Loss(net, WholeBatch(0)).backward();
    optimizer->step();
  }
  broadcast_parameters(net, 0);
  DistributedOptimizer distributed(std::move(optimizer),
                                   net->named_parameters());
  broadcast_optimizer_state(distributed, 0);
  EXPECT_DOUBLE_EQ(distributed.inner().param_groups()[0].options().get_lr(),
                   0.1);
  EXPECT_EQ(distributed.inner().state().size(), net->parameters().size());
  distributed.zero_grad();
  Loss(net, Shard(WholeBatch(1))).backward();
  distributed.step();
  ExpectSameOnAllRanks(*net);
}

TEST(BroadcastStateTest, OptimizerStateThatOnlyTheRootLacks) {
  Net net = MakeNet();
  torch::optim::Adam optimizer(net->parameters(), 0.1);
  if (rank() != 0) {
    Loss(net, WholeBatch(0)).backward();
    optimizer.step();
  }
  broadcast_optimizer_state(optimizer, 0);
  EXPECT_EQ(optimizer.state().size(), 0U);
}

}  // namespace
}  // namespace hvdlite
