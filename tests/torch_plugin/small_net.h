// A small model without batch norm, batches for it, and training it on shards
// against one process on the whole batch.
#pragma once

#include <gtest/gtest.h>
#include <hvdlite/hvdlite.h>
#include <torch/torch.h>

#include <cmath>
#include <cstdint>
#include <functional>
#include <memory>
#include <vector>

namespace hvdlite {

inline constexpr int64_t kSamplesPerRank = 3;

struct NetImpl : torch::nn::Module {
  NetImpl()
      : convolution(register_module(
            "convolution",
            torch::nn::Conv2d(torch::nn::Conv2dOptions(3, 4, 3).padding(1)))),
        linear(register_module("linear", torch::nn::Linear(4 * 6 * 6, 5))) {
    to(torch::kDouble);
  }
  torch::Tensor forward(const torch::Tensor& input) {
    return linear->forward(torch::relu(convolution->forward(input)).flatten(1));
  }
  torch::nn::Conv2d convolution;
  torch::nn::Linear linear;
};
TORCH_MODULE(Net);

inline Net MakeNet() {
  torch::manual_seed(7);
  return Net();
}

struct Batch {
  torch::Tensor input;
  torch::Tensor target;
};

// For `ranks` ranks; the same on every rank.
inline Batch WholeBatch(int step, int ranks = size()) {
  torch::manual_seed(static_cast<uint64_t>(100 + step));
  const int64_t samples = kSamplesPerRank * ranks;
  return {torch::randn({samples, 3, 6, 6}, torch::kDouble),
          torch::randn({samples, 5}, torch::kDouble)};
}

inline Batch Shard(const Batch& batch, int index = rank()) {
  const int64_t first = index * kSamplesPerRank;
  return {batch.input.slice(0, first, first + kSamplesPerRank),
          batch.target.slice(0, first, first + kSamplesPerRank)};
}

inline torch::Tensor Loss(Net& net, const Batch& batch) {
  return torch::mse_loss(net->forward(batch.input), batch.target);
}

inline void ExpectSameOnAllRanks(const torch::nn::Module& module,
                                 const ProcessSet& process_set = {}) {
  const int root = process_set.ranks().front();
  for (const auto& item : module.named_parameters()) {
    const torch::Tensor first =
        broadcast(item.value().detach(), root,
                  BroadcastOptions().process_set(process_set));
    EXPECT_TRUE(first.equal(item.value())) << item.key();
  }
}

inline void ExpectClose(const torch::nn::Module& actual,
                        const torch::nn::Module& expected,
                        double tolerance = 1e-9) {
  const auto wanted = expected.named_parameters();
  for (const auto& item : actual.named_parameters()) {
    EXPECT_TRUE(torch::allclose(item.value(), wanted[item.key()], tolerance,
                                tolerance / 100))
        << item.key() << " differs by "
        << (item.value() - wanted[item.key()]).abs().max().item<double>();
  }
}

using MakeOptimizer =
    std::function<std::unique_ptr<torch::optim::Optimizer>(Net&)>;

inline std::unique_ptr<torch::optim::Optimizer> MakeSgd(Net& net) {
  return std::make_unique<torch::optim::SGD>(net->parameters(), 0.1);
}

inline DistributedOptimizer Distribute(
    Net& net, const MakeOptimizer& make = MakeSgd,
    const DistributedOptimizerOptions& options = {}) {
  return DistributedOptimizer(make(net), net->named_parameters(), options);
}

// The ranks 0, 2, 4, ...; collective.
inline ProcessSet EvenRanks() {
  std::vector<int> ranks;
  for (int i = 0; i < size(); i += 2) ranks.push_back(i);
  return add_process_set(ranks);
}

// One step on `batches`, one per backward pass. Optimizer: of LibTorch, or a
// DistributedOptimizer. `loss_scale` multiplies the loss that is
// differentiated.
template <typename Optimizer>
torch::Tensor TrainStep(Net& net, Optimizer& optimizer,
                        const std::vector<Batch>& batches,
                        double loss_scale = 1) {
  return optimizer.step([&] {
    optimizer.zero_grad();
    torch::Tensor sum = torch::zeros({}, torch::kDouble);
    for (const Batch& batch : batches) {
      const torch::Tensor loss = Loss(net, batch) * loss_scale;
      loss.backward();
      sum += loss.detach();
    }
    return sum;
  });
}

// Trains `net` from MakeNet()'s parameters on the ranks of the options' process
// set, which this rank is in, and a copy of it alone.
inline void ExpectTrainsAsOneProcess(
    const MakeOptimizer& make, Net net,
    const DistributedOptimizerOptions& options = {}, double tolerance = 1e-8) {
  const ProcessSet& set = options.process_set();
  Net alone = MakeNet();
  const auto optimizer_alone = make(alone);
  DistributedOptimizer optimizer = Distribute(net, make, options);
  const double loss_scale = options.op() == ReduceOp::Sum ? set.size() : 1;
  for (int step = 0; step < 4; ++step) {
    std::vector<Batch> whole;
    std::vector<Batch> shards;
    for (int pass = 0; pass < options.backward_passes_per_step(); ++pass) {
      whole.push_back(WholeBatch(10 * step + pass, set.size()));
      shards.push_back(Shard(whole.back(), set.rank()));
    }
    const torch::Tensor loss_alone =
        TrainStep(alone, *optimizer_alone, whole, loss_scale);
    const torch::Tensor loss = TrainStep(net, optimizer, shards);
    EXPECT_NEAR(loss.item<double>() * loss_scale, loss_alone.item<double>(),
                std::abs(loss_alone.item<double>()) * tolerance);
    ExpectClose(*net, *alone, tolerance);
  }
  ExpectSameOnAllRanks(*net, set);
}

}  // namespace hvdlite
