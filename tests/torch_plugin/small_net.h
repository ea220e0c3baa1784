// A small model without batch norm, and batches for it.
#pragma once

#include <gtest/gtest.h>
#include <hvdlite/hvdlite.h>
#include <torch/torch.h>

#include <cstdint>

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

// The same on every rank.
inline Batch WholeBatch(int step) {
  torch::manual_seed(static_cast<uint64_t>(100 + step));
  const int64_t samples = kSamplesPerRank * size();
  return {torch::randn({samples, 3, 6, 6}, torch::kDouble),
          torch::randn({samples, 5}, torch::kDouble)};
}

inline Batch Shard(const Batch& batch) {
  const int64_t first = rank() * kSamplesPerRank;
  return {batch.input.slice(0, first, first + kSamplesPerRank),
          batch.target.slice(0, first, first + kSamplesPerRank)};
}

inline torch::Tensor Loss(Net& net, const Batch& batch) {
  return torch::mse_loss(net->forward(batch.input), batch.target);
}

inline void ExpectSameOnAllRanks(const torch::nn::Module& module) {
  for (const auto& item : module.named_parameters()) {
    const torch::Tensor first = broadcast(item.value().detach(), 0);
    EXPECT_TRUE(first.equal(item.value())) << item.key();
  }
}

}  // namespace hvdlite
