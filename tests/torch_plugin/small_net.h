// A small model without batch norm, mini-batches for it, and optimizers that
// distribute it over the ranks in all ways.
#pragma once

#include <gtest/gtest.h>
#include <hvdlite/hvdlite.h>
#include <torch/torch.h>

#include <algorithm>
#include <cstdint>
#include <functional>
#include <memory>
#include <string>
#include <tuple>
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

// The mini-batch of `ranks` ranks; the same on every rank.
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

// `tolerance` is for float64.
inline void ExpectClose(const torch::nn::Module& actual,
                        const torch::nn::Module& expected,
                        double tolerance = 1e-9) {
  const auto wanted = expected.named_parameters();
  for (const auto& item : actual.named_parameters()) {
    const bool is_double = item.value().element_size() >= 8;
    const double relative = is_double ? tolerance : std::max(tolerance, 1e-5);
    EXPECT_TRUE(torch::allclose(item.value(), wanted[item.key()], relative,
                                relative / 100))
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

using Parameters = torch::OrderedDict<std::string, torch::Tensor>;

// The same for tensors instead of a model.
inline DistributedOptimizer DistributeSgd(
    const Parameters& parameters,
    const DistributedOptimizerOptions& options = {}, double rate = 1) {
  return DistributedOptimizer(
      std::make_unique<torch::optim::SGD>(parameters.values(), rate),
      parameters, options);
}

inline bool AllEqual(const torch::Tensor& tensor, double value) {
  return tensor.eq(value).all().item<bool>();
}

// The sum of rank() + 1 over all ranks.
inline double SumOfRanks() { return size() * (size() + 1) / 2; }

// Each gradient is rank() + 1, and its sum is SumOfRanks().
inline void Backward(const std::vector<torch::Tensor>& parameters) {
  torch::Tensor sum = torch::zeros({}, torch::kDouble);
  for (const torch::Tensor& one : parameters) sum = sum + one.sum();
  (sum * (rank() + 1)).backward();
}

// Returns when all earlier operations with this op have been reduced. Small
// tensors may otherwise wait until a thread waits for an operation.
inline void WaitForOthers(ReduceOp op = ReduceOp::Sum) {
  for (int i = 0; i < 3; ++i) {
    allreduce_(torch::zeros({1}), AllreduceOptions().op(op));
  }
}

// How gradients are reduced: their groups, and whether they are views.
class EveryWayTest
    : public ::testing::TestWithParam<std::tuple<int64_t, bool>> {
 protected:
  static DistributedOptimizerOptions options() {
    return DistributedOptimizerOptions()
        .groups(std::get<0>(GetParam()))
        .gradient_as_fusion_view(has_views());
  }
  static bool has_views() { return std::get<1>(GetParam()); }
};

inline auto EveryWay() {
  return ::testing::Combine(::testing::Values(0, 1, 2), ::testing::Bool());
}

// One step on `batches`, with one backward pass per mini-batch. Optimizer: one
// of LibTorch's or a DistributedOptimizer.
template <typename Optimizer>
torch::Tensor TrainStep(Net& net, Optimizer& optimizer,
                        const std::vector<Batch>& batches) {
  return optimizer.step([&] {
    optimizer.zero_grad();
    torch::Tensor sum = torch::zeros({}, torch::kDouble);
    for (const Batch& batch : batches) {
      const torch::Tensor loss = Loss(net, batch);
      loss.backward();
      sum += loss.detach();
    }
    return sum;
  });
}

}  // namespace hvdlite
