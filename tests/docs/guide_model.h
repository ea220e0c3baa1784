// The model of the guide's examples.
#pragma once

#include <gtest/gtest.h>
#include <hvdlite/hvdlite.h>
#include <torch/torch.h>

#include <cstdint>
#include <functional>
#include <memory>

namespace hvdlite::guide {

inline torch::nn::Sequential MakeModel() {
  torch::manual_seed(5);
  return torch::nn::Sequential(torch::nn::Linear(4, 8), torch::nn::Tanh(),
                               torch::nn::Linear(8, 1));
}

// The samples of all ranks together; they are the same on every rank.
inline torch::Tensor WholeBatch(int64_t samples_per_rank = 6) {
  torch::manual_seed(11);
  return torch::randn({samples_per_rank * hvdlite::size(), 4});
}

inline torch::Tensor Shard(const torch::Tensor& batch) {
  return batch.tensor_split(hvdlite::size())[hvdlite::rank()];
}

inline torch::Tensor Loss(torch::nn::Sequential& model,
                          const torch::Tensor& inputs) {
  return model->forward(inputs).square().mean();
}

inline hvdlite::DistributedOptimizer Distribute(
    torch::nn::Sequential& model,
    const hvdlite::DistributedOptimizerOptions& options = {}) {
  return hvdlite::DistributedOptimizer(
      std::make_unique<torch::optim::SGD>(model->parameters(), 0.1),
      model->named_parameters(), options);
}

inline void ExpectClose(torch::nn::Sequential& actual,
                        torch::nn::Sequential& expected) {
  const auto wanted = expected->parameters();
  const auto got = actual->parameters();
  for (size_t i = 0; i < wanted.size(); ++i) {
    EXPECT_TRUE(torch::allclose(got[i], wanted[i], 1e-4, 1e-6)) << i;
  }
}

// Checks that one process reaches the parameters of `model` from MakeModel() in
// `steps` steps.
inline void ExpectAsOneProcess(
    torch::nn::Sequential& model, int steps = 1,
    const std::function<torch::Tensor(torch::nn::Sequential& alone)>& loss =
        [](torch::nn::Sequential& alone) {
          return Loss(alone, WholeBatch());
        }) {
  auto alone = MakeModel();
  torch::optim::SGD sgd(alone->parameters(), 0.1);
  for (int step = 0; step < steps; ++step) {
    sgd.zero_grad();
    loss(alone).backward();
    sgd.step();
  }
  ExpectClose(model, alone);
}

inline void ExpectSameOnAllRanks(torch::nn::Sequential& model) {
  for (const torch::Tensor& parameter : model->parameters()) {
    const torch::Tensor first = hvdlite::broadcast(parameter.detach(), 0);
    EXPECT_TRUE(first.equal(parameter));
  }
}

}  // namespace hvdlite::guide
