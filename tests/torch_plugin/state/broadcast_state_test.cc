// Broadcasting models and optimizers, on any number of ranks.
#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <hvdlite/hvdlite.h>
#include <torch/torch.h>

#include <cmath>
#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "tests/torch_plugin/optimizer_kinds.h"
#include "tests/torch_plugin/same_error.h"
#include "tests/torch_plugin/small_net.h"

namespace hvdlite {
namespace {

using ::testing::AllOf;
using ::testing::HasSubstr;

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
  // The same for another model with other shapes under the same names.
  torch::nn::Sequential other(torch::nn::Linear(2, 2),
                              torch::nn::BatchNorm1d(2));
  broadcast_parameters(*other, 0);
  broadcast_parameters(other->named_parameters(), 0);
  ExpectSameOnAllRanks(*other);
}

// Tensors whose elements share memory, like those of expand() and unfold().
struct SharedMemory : torch::nn::Module {
  SharedMemory() {
    torch::Tensor base = torch::arange(4.) + 10 * rank();
    base[0] = std::nan("");
    row = register_buffer("row", base.unsqueeze(0).expand({3, 4}));
    windows = register_buffer("windows", base.clone().unfold(0, 2, 1));
    one = register_buffer("one", torch::full({}, rank()).expand({2, 2}));
  }
  torch::Tensor row;
  torch::Tensor windows;
  torch::Tensor one;
};

TEST(BroadcastStateTest, BuffersWhoseElementsShareMemory) {
  SharedMemory model;
  const int root = size() - 1;
  const torch::Tensor memory = model.row[0];
  broadcast_parameters(model, root);
  const torch::Tensor expected = torch::arange(1., 4.) + 10 * root;
  for (int i = 0; i < 3; ++i) {
    EXPECT_TRUE(model.row[i].slice(0, 1).equal(expected));
    EXPECT_TRUE(model.row[i][0].isnan().item<bool>());
  }
  EXPECT_TRUE(memory.slice(0, 1).equal(expected));  // in place
  EXPECT_EQ(model.row.stride(0), 0);
  EXPECT_TRUE(model.windows[2].equal(expected.slice(0, 1)));
  EXPECT_TRUE(model.one.eq(root).all().item<bool>());
}

TEST(BroadcastStateTest, ErrorNamesTensorWhoseSharedElementsWouldDiffer) {
  if (size() == 1) GTEST_SKIP() << "needs two ranks";
  torch::OrderedDict<std::string, torch::Tensor> tensors;
  tensors.insert("mask", rank() == 0
                             ? torch::tensor({1, 2})
                             : torch::zeros({1}, torch::kLong).expand({2}));
  const std::string text =
      ErrorText([&] { broadcast_parameters(tensors, /*root_rank=*/0); });
  if (rank() == 0) {
    EXPECT_EQ(text, "nothing was thrown");
  } else {
    EXPECT_THAT(text, AllOf(HasSubstr("'broadcast_parameters.mask'"),
                            HasSubstr("overlap in memory")));
    EXPECT_TRUE(tensors["mask"].eq(0).all().item<bool>());
  }
}

TEST(BroadcastStateTest, ATensorThatOneRankLacksIsNamedAndNothingChanges) {
  if (size() == 1) GTEST_SKIP() << "needs two ranks";
  torch::manual_seed(static_cast<uint64_t>(rank()));
  torch::nn::Sequential model(torch::nn::Linear(2, 3));
  if (rank() == 1) model->push_back(torch::nn::Linear(3, 2));
  const torch::Tensor before = model->parameters()[0].detach().clone();
  EXPECT_THAT(ErrorText([&] { broadcast_parameters(model, 0); }),
              AllOf(HasSubstr("'broadcast_parameters.1."),
                    HasSubstr("is on rank 1 (4 tensors), but not on rank 0 (2 "
                              "tensors); construct the same model")));
  EXPECT_TRUE(model->parameters()[0].equal(before));
  // Afterwards no operation is pending.
  torch::nn::Linear same(2, 2);
  broadcast_parameters(same, 0);
  ExpectSameOnAllRanks(*same);
}

TEST(BroadcastStateTest, ErrorsInAProcessSetNameGlobalRanks) {
  if (size() < 3) GTEST_SKIP() << "needs two ranks in the set";
  const ProcessSet even = EvenRanks();
  if (even.included()) {
    torch::OrderedDict<std::string, torch::Tensor> tensors;
    if (rank() == 2) tensors.insert("weight", torch::zeros({2}));
    EXPECT_THAT(ErrorText([&] { broadcast_parameters(tensors, 0, even); }),
                HasSubstr("'broadcast_parameters.weight' is on rank 2 (1 "
                          "tensors), but not on rank 0 (0 tensors)"));
  }
  remove_process_set(even);
}

TEST(BroadcastStateTest, OptimizerStateGoesToTheOptimizersProcessSet) {
  const ProcessSet even = EvenRanks();
  if (even.included()) {
    Net net = MakeNet();
    DistributedOptimizer optimizer = Distribute(
        net,
        [](Net& model) {
          return std::make_unique<torch::optim::SGD>(
              model->parameters(), torch::optim::SGDOptions(1.0 + rank()));
        },
        DistributedOptimizerOptions().process_set(even));
    const int root = even.ranks().back();
    broadcast_optimizer_state(optimizer, root);
    EXPECT_EQ(optimizer.inner().param_groups()[0].options().get_lr(),
              1.0 + root);
  }
  remove_process_set(even);
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

std::vector<std::vector<torch::Tensor>> GroupsOf(Net& net) {
  return {net->convolution->parameters(), net->linear->parameters()};
}

class OptimizerStateTest : public ::testing::TestWithParam<OptimizerKind> {
 protected:
  // The root trains alone for three steps. Then all ranks of the set train.
  void ExpectTrainingContinues(const ProcessSet& set, int root) {
    const bool is_root = rank() == root;
    Net alone = MakeNet();
    const auto optimizer_alone = GetParam().one(GroupsOf(alone));
    Net net = MakeNet();
    auto inner = (is_root ? GetParam().one : GetParam().other)(GroupsOf(net));
    for (int step = 0; step < 3; ++step) {
      const std::vector<Batch> batch = {WholeBatch(step, 1)};
      TrainStep(alone, *optimizer_alone, batch);
      if (is_root) TrainStep(net, *inner, batch);
    }
    broadcast_parameters(net, root, set);
    DistributedOptimizer optimizer(
        std::move(inner), net->named_parameters(),
        DistributedOptimizerOptions().process_set(set));
    broadcast_optimizer_state(optimizer, root, set);
    for (size_t i = 0; i < optimizer_alone->param_groups().size(); ++i) {
      EXPECT_EQ(optimizer.inner().param_groups()[i].options().get_lr(),
                optimizer_alone->param_groups()[i].options().get_lr());
    }
    EXPECT_EQ(optimizer.inner().state().size(),
              optimizer_alone->state().size());
    for (int step = 3; step < 6; ++step) {
      const Batch whole = WholeBatch(step, set.size());
      TrainStep(alone, *optimizer_alone, {whole});
      TrainStep(net, optimizer, {Shard(whole, set.rank())});
    }
    ExpectClose(*net, *alone, 1e-6);
    ExpectSameOnAllRanks(*net, set);
  }
};

INSTANTIATE_TEST_SUITE_P(, OptimizerStateTest,
                         ::testing::ValuesIn(OptimizerKinds()),
                         [](const auto& info) { return info.param.name; });

TEST_P(OptimizerStateTest, TrainingContinuesOnAllRanks) {
  ExpectTrainingContinues(ProcessSet(), size() - 1);
}

TEST_P(OptimizerStateTest, TrainingContinuesInAProcessSet) {
  const ProcessSet even = EvenRanks();
  if (even.included()) ExpectTrainingContinues(even, even.ranks().back());
  remove_process_set(even);
}

// The optimizer has a state, but no direction yet.
TEST(BroadcastStateTest, LbfgsWithStateButWithoutDirection) {
  Net net = MakeNet();
  torch::optim::LBFGS optimizer(
      net->parameters(), torch::optim::LBFGSOptions(0.1).tolerance_grad(1e9));
  if (rank() == 0) TrainStep(net, optimizer, {WholeBatch(0)});
  broadcast_optimizer_state(optimizer, 0);
  static_cast<torch::optim::LBFGSOptions&>(
      optimizer.param_groups()[0].options())
      .tolerance_grad(1e-7);
  TrainStep(net, optimizer, {WholeBatch(0)});
  ExpectSameOnAllRanks(*net);
  EXPECT_FALSE(net->linear->bias.equal(MakeNet()->linear->bias));
}

TEST(BroadcastStateTest, OptimizersThatDifferAreTheSameErrorOnEveryRank) {
  Net net = MakeNet();
  torch::optim::SGD sgd(net->parameters(), 0.1);
  torch::optim::Adam adam(net->parameters(), 0.1);
  torch::optim::SGD part(net->linear->parameters(), 0.1);
  const bool last = rank() == size() - 1;
  const auto text = [&](torch::optim::Optimizer& other) {
    return ErrorText([&] {
      if (last) {
        broadcast_optimizer_state(other, 0);
      } else {
        broadcast_optimizer_state(sgd, 0);
      }
    });
  };
  if (size() == 1) return;
  EXPECT_THAT(
      text(adam),
      AllOf(HasSubstr("torch::optim::SGD"), HasSubstr("torch::optim::Adam"),
            HasSubstr("rank " + std::to_string(size() - 1))));
  EXPECT_THAT(text(part), HasSubstr("parameter groups"));
  EXPECT_THAT(ErrorText([&] { broadcast_optimizer_state(sgd, last ? 0 : 1); }),
              HasSubstr("root_rank 0"));
}

TEST(BroadcastStateTest, RootOutsideTheProcessSetIsRejected) {
  Net net = MakeNet();
  torch::optim::SGD optimizer(net->parameters(), 0.1);
  for (const int root : {-1, size()}) {
    const std::string number = std::to_string(root);
    EXPECT_THAT(ErrorText([&] { broadcast_optimizer_state(optimizer, root); }),
                HasSubstr(number));
    EXPECT_THAT(ErrorText([&] { broadcast_parameters(net, root); }),
                HasSubstr(number));
  }
}

TEST(BroadcastStateTest, ParametersInAProcessSetDoNotChangeOtherRanks) {
  const ProcessSet even = EvenRanks();
  const int root = even.ranks().back();
  torch::nn::Linear model(2, 2);
  {
    const torch::NoGradGuard no_grad;
    model->weight.fill_(rank());
  }
  if (even.included()) broadcast_parameters(model, root, even);
  const int expected = even.included() ? root : rank();
  EXPECT_TRUE(model->weight.eq(expected).all().item<bool>());
  remove_process_set(even);
}

TEST(BroadcastStateTest, ShapesThatDifferAreTheSameErrorOnEveryRank) {
  if (size() == 1) return;
  torch::nn::Linear model(rank() == 0 ? 3 : 2, 2);
  ExpectSameError([&] { broadcast_parameters(model, 0); },
                  "the shape of 'broadcast_parameters.weight'");
}

}  // namespace
}  // namespace hvdlite
