// Policy networks, which choose actions in games.
#pragma once

#include <torch/nn.h>

#include <cstdint>

namespace hvdlite::trainers {

// The perceptron of PyTorch's example "reinforcement_learning": one hidden
// layer after the four numbers that describe a cart with a pole.
class CartPolePolicyImpl : public torch::nn::Module {
 public:
  CartPolePolicyImpl();

  // Maps states [N, 4] float to log probabilities [N, 2] of the actions.
  torch::Tensor forward(const torch::Tensor& states);

 private:
  torch::nn::Linear hidden_;
  torch::nn::Linear output_;
};
TORCH_MODULE(CartPolePolicy);

inline constexpr int64_t kFrameSide = 84;    // pixels
inline constexpr int64_t kFrameStack = 4;    // frames per input
inline constexpr int64_t kFrameActions = 6;  // Pong's

struct PolicyOutput {
  torch::Tensor log_probabilities;  // [N, kFrameActions]
  torch::Tensor values;             // [N], expected returns
};

// Three convolutions and a linear layer of 512 units, as in Mnih et al.,
// "Human-level control through deep reinforcement learning" (Nature 2015), but
// with 32 channels in the last convolution. Initial weights are orthogonal.
class FramePolicyImpl : public torch::nn::Module {
 public:
  FramePolicyImpl();

  // `frames` is [N, kFrameStack, kFrameSide, kFrameSide], grey from 0 to 255,
  // of any type.
  PolicyOutput forward(const torch::Tensor& frames);

 private:
  torch::nn::Sequential features_;
  torch::nn::Linear actor_;
  torch::nn::Linear critic_;
};
TORCH_MODULE(FramePolicy);

}  // namespace hvdlite::trainers
