// What users of Horovod rely on when they train; tests/horovod_parity.md tells
// which of Horovod's test cases is covered where.
#include <gtest/gtest.h>
#include <hvdlite/hvdlite.h>
#include <torch/torch.h>

#include <functional>
#include <memory>
#include <utility>
#include <vector>

#include "tests/torch_plugin/horovod_sets.h"
#include "tests/torch_plugin/small_net.h"

namespace hvdlite {
namespace {

using Options = DistributedOptimizerOptions;
using MakeFor = std::function<std::unique_ptr<torch::optim::Optimizer>(
    std::vector<torch::Tensor>)>;

template <typename Optimizer, typename OptimizerOptions>
MakeFor Maker(const OptimizerOptions& options) {
  return [options](std::vector<torch::Tensor> parameters) {
    return std::make_unique<Optimizer>(std::move(parameters), options);
  };
}

std::vector<MakeFor> SeveralOptimizers() {
  using namespace torch::optim;
  return {
      Maker<SGD>(SGDOptions(0.2)),
      Maker<SGD>(SGDOptions(0.2).momentum(0.9).weight_decay(0.1)),
      Maker<Adam>(AdamOptions(0.02).weight_decay(0.1)),
      Maker<AdamW>(AdamWOptions(0.02)),
      Maker<RMSprop>(RMSpropOptions(0.02)),
      Maker<Adagrad>(AdagradOptions(0.02)),
  };
}

// Gradients that are there are dropped, by whatever LibTorch.
void DropGradients(const torch::nn::Module& module) {
  for (torch::Tensor& parameter : module.parameters()) {
    parameter.mutable_grad().reset();
  }
}

struct TwoHeadsImpl : torch::nn::Module {
  TwoHeadsImpl()
      : trunk(register_module("trunk", torch::nn::Linear(5, 6))),
        first(register_module("first", torch::nn::Linear(6, 4))),
        second(register_module("second", torch::nn::Linear(4, 4))) {
    to(torch::kDouble);
  }
  // Rank 0 has the first head's loss, others the second's.
  torch::Tensor LossOfRank(int rank, const torch::Tensor& input) {
    const torch::Tensor output =
        first->forward(torch::relu(trunk->forward(input)));
    const torch::Tensor head =
        rank == 0 ? output : second->forward(torch::relu(output));
    return head.square().mean();
  }
  torch::nn::Linear trunk;
  torch::nn::Linear first;
  torch::nn::Linear second;
};
TORCH_MODULE(TwoHeads);

TwoHeads MakeTwoHeads() {
  torch::manual_seed(11);
  return TwoHeads();
}

torch::Tensor InputOf(int rank, int step) {
  torch::manual_seed(static_cast<uint64_t>(100 * step + rank));
  return torch::randn({3, 5}, torch::kDouble);
}

TEST(HorovodTrainingTest, LayersThatOneRankDoesNotUseTrainAsInOneProcess) {
  for (const MakeFor& make : SeveralOptimizers()) {
    for (const int64_t groups : {0, 2}) {
      TwoHeads net = MakeTwoHeads();
      TwoHeads alone = MakeTwoHeads();
      DistributedOptimizer optimizer(make(net->parameters()),
                                     net->named_parameters(),
                                     Options().groups(groups));
      const auto optimizer_alone = make(alone->parameters());
      for (int step = 0; step < 3; ++step) {
        optimizer.zero_grad();
        net->LossOfRank(rank(), InputOf(rank(), step)).backward();
        optimizer.step();
        DropGradients(*alone);
        for (int i = 0; i < size(); ++i) {
          (alone->LossOfRank(i, InputOf(i, step)) / size()).backward();
        }
        optimizer_alone->step();
        ExpectClose(*net, *alone, 1e-7);
      }
      ExpectSameOnAllRanks(*net);
    }
  }
}

struct Adversaries {
  torch::nn::Linear generator{nullptr};
  torch::nn::Linear discriminator{nullptr};

  torch::Tensor Loss(const torch::Tensor& input) {
    return torch::sigmoid(discriminator->forward(generator->forward(input)))
        .mean();
  }
  // What the other has is frozen.
  void TrainOnly(bool train_generator) {
    for (torch::Tensor& parameter : generator->parameters()) {
      parameter.requires_grad_(train_generator);
    }
    for (torch::Tensor& parameter : discriminator->parameters()) {
      parameter.requires_grad_(!train_generator);
    }
  }
};

Adversaries MakeAdversaries() {
  torch::manual_seed(5);
  Adversaries result{torch::nn::Linear(5, 4), torch::nn::Linear(4, 1)};
  result.generator->to(torch::kDouble);
  result.discriminator->to(torch::kDouble);
  return result;
}

TEST(HorovodTrainingTest, OptimizersThatTakeTurnsTrainAsInOneProcess) {
  Adversaries pair = MakeAdversaries();
  Adversaries alone = MakeAdversaries();
  const MakeFor make =
      Maker<torch::optim::SGD>(torch::optim::SGDOptions(0.5).momentum(0.5));
  DistributedOptimizer generator_optimizer(make(pair.generator->parameters()),
                                           pair.generator->named_parameters());
  DistributedOptimizer discriminator_optimizer(
      make(pair.discriminator->parameters()),
      pair.discriminator->named_parameters());
  const auto generator_alone = make(alone.generator->parameters());
  const auto discriminator_alone = make(alone.discriminator->parameters());
  for (int step = 0; step < 10; ++step) {
    const bool train_generator = step % 2 == 0;
    pair.TrainOnly(train_generator);
    generator_optimizer.zero_grad();
    discriminator_optimizer.zero_grad();
    pair.Loss(InputOf(rank(), step)).backward();
    EXPECT_EQ(pair.generator->weight.grad().defined(), train_generator);
    EXPECT_EQ(pair.discriminator->weight.grad().defined(), !train_generator);
    (train_generator ? generator_optimizer : discriminator_optimizer).step();

    alone.TrainOnly(train_generator);
    DropGradients(*alone.generator);
    DropGradients(*alone.discriminator);
    for (int i = 0; i < size(); ++i) {
      (alone.Loss(InputOf(i, step)) / size()).backward();
    }
    (train_generator ? *generator_alone : *discriminator_alone).step();
    ExpectClose(*pair.generator, *alone.generator);
    ExpectClose(*pair.discriminator, *alone.discriminator);
  }
}

struct MaskedImpl : torch::nn::Module {
  explicit MaskedImpl(int rank)
      : index(register_parameter(
            "index", torch::tensor({1, 3}, torch::kInt) - (rank == 0 ? 0 : 1),
            /*requires_grad=*/false)),
        mask(register_parameter("mask",
                                torch::full({4}, rank == 0, torch::kBool),
                                /*requires_grad=*/false)),
        weight(register_parameter(
            "weight", torch::full({4}, 1.0 + rank, torch::kDouble))) {}
  torch::Tensor index;
  torch::Tensor mask;
  torch::Tensor weight;
};
TORCH_MODULE(Masked);

// Integers and flags cannot have one.
TEST(HorovodTrainingTest, ParametersWithoutGradientMayHaveAnyDtype) {
  for (const int64_t groups : {0, 1}) {
    Masked model(rank());
    broadcast_parameters(model, 0);
    DistributedOptimizer optimizer(
        std::make_unique<torch::optim::SGD>(
            model->parameters(),
            torch::optim::SGDOptions(0.5).momentum(0.9).weight_decay(0.1)),
        model->named_parameters(), Options().groups(groups));
    broadcast_optimizer_state(optimizer, 0);
    torch::Tensor sum = (model->weight * model->mask)
                            .index_select(0, model->index.to(at::kLong))
                            .sum();
    (sum * (rank() + 1)).backward();
    optimizer.synchronize();
    EXPECT_FALSE(model->index.grad().defined());
    EXPECT_FALSE(model->mask.grad().defined());
    const double average = (size() + 1) / 2.0;
    EXPECT_TRUE(torch::allclose(
        model->weight.grad(),
        torch::tensor({0.0, average, 0.0, average}, torch::kDouble)));
    optimizer.step();
    broadcast_optimizer_state(optimizer, 0);
    EXPECT_TRUE(model->index.equal(torch::tensor({1, 3}, torch::kInt)));
    EXPECT_TRUE(model->mask.all().item<bool>());
    ExpectSameOnAllRanks(*model);
  }
}

// Each rank the model of its set; the sets have different parameters then.
TEST(HorovodTrainingTest, DisjointSetsTrainTheirModelsAtTheSameTime) {
  ByParity([](const ProcessSet& set) {
    Net net = MakeNet();
    DistributedOptimizer optimizer =
        Distribute(net, MakeSgd, Options().process_set(set));
    Net alone = MakeNet();
    const auto optimizer_alone = MakeSgd(alone);
    const int parity = rank() % 2;
    for (int step = 0; step < 3; ++step) {
      const Batch whole = WholeBatch(2 * step + parity, set.size());
      TrainStep(net, optimizer, {Shard(whole, set.rank())});
      TrainStep(alone, *optimizer_alone, {whole});
      ExpectClose(*net, *alone);
    }
    ExpectSameOnAllRanks(*net, set);
    const torch::Tensor of_even = broadcast(net->linear->weight.detach(), 0);
    EXPECT_EQ(of_even.equal(net->linear->weight), parity == 0);
  });
}

// Rank r has r + 1 batches. `loss(model, rank, step)`.
template <typename Model, typename LossOf>
void ExpectTrainsWithUnevenBatches(Model net, Model alone, LossOf loss,
                                   const Options& options) {
  torch::optim::SGD optimizer_alone(alone->parameters(), 0.1);
  DistributedOptimizer optimizer(
      std::make_unique<torch::optim::SGD>(net->parameters(), 0.1),
      net->named_parameters(), options);
  for (int step = 0; step <= rank(); ++step) {
    optimizer.zero_grad();
    loss(net, rank(), step).backward();
    optimizer.step();
  }
  const int last = join();
  for (int step = 0; step < size(); ++step) {
    DropGradients(*alone);
    for (int i = step; i < size(); ++i) {
      (loss(alone, i, step) / (size() - step)).backward();
    }
    optimizer_alone.step();
  }
  // The last rank has them all.
  broadcast_parameters(net, last);
  ExpectClose(*net, *alone);
}

TEST(HorovodTrainingTest, RanksWithoutFurtherBatchesJoinWhileTheOthersTrain) {
  const auto loss = [](Net& net, int rank, int step) {
    return Loss(net, Shard(WholeBatch(step), rank));
  };
  for (const int64_t groups : {0, 1}) {
    ExpectTrainsWithUnevenBatches(MakeNet(), MakeNet(), loss,
                                  Options().groups(groups));
  }
}

TEST(HorovodTrainingTest, RanksJoinWhileTheOthersTrainSparseEmbeddings) {
  const auto make = [] {
    torch::manual_seed(3);
    torch::nn::Embedding embedding(
        torch::nn::EmbeddingOptions(20, 3).sparse(true));
    embedding->to(torch::kDouble);
    return embedding;
  };
  const auto loss = [](torch::nn::Embedding& embedding, int rank, int step) {
    const torch::Tensor words = torch::tensor({rank, step, 7}, torch::kLong);
    return embedding->forward(words).square().sum();
  };
  for (const bool as_dense : {false, true}) {
    ExpectTrainsWithUnevenBatches(make(), make(), loss,
                                  Options().sparse_as_dense(as_dense));
  }
}

}  // namespace
}  // namespace hvdlite
