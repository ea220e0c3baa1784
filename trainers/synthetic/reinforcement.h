// Reinforcement learning of policies for games.
#pragma once

#include <ATen/core/Generator.h>
#include <torch/types.h>

#include <cstdint>
#include <vector>

#include "trainers/models/policies.h"
#include "trainers/synthetic/games.h"

namespace hvdlite::trainers {

struct Played {
  torch::Tensor loss;  // a scalar, for backward()
  int64_t games = 0;   // complete games
};

// Plays `steps` steps with one forward pass each; the policy draws the actions.
// Returns REINFORCE's loss: Williams, "Simple Statistical Gradient-Following
// Algorithms for Connectionist Reinforcement Learning" (Machine Learning,
// 1992), with returns discounted by 0.99 and normalised, as in PyTorch's
// example.
Played PlayCartPole(CartPolePolicy& policy, CartPole& game, int64_t steps,
                    const at::Generator& random);

struct PpoOptions {
  int64_t games = 8;    // at the same time
  int64_t steps = 128;  // of each game per batch; games * steps >= 4
  uint64_t seed = 0;    // for the games and the actions
};

// Proximal policy optimisation (Schulman et al., 2017) on the frames of ball
// games. A batch plays options.steps of all games, then computes kUpdates
// losses: four passes in new random orders, each loss over a quarter of the
// steps. Advantages are generalised (Schulman et al., ICLR 2016; gamma 0.99,
// lambda 0.95); ratios are clipped at 0.1. The loss of the values has the
// weight 0.5, the entropy 0.01.
class PpoPlayer {
 public:
  static constexpr int64_t kMinibatches = 4;
  static constexpr int64_t kPasses = 4;
  static constexpr int64_t kUpdates = kMinibatches * kPasses;

  PpoPlayer(FramePolicy policy, const PpoOptions& options);

  // The next loss. Plays first at the beginning of a batch.
  torch::Tensor NextLoss();

  // The mean reward of the games that ended in the last batch.
  double mean_reward() const { return mean_reward_; }

 private:
  void Play();
  void ShowFrames();
  void EstimateReturns(const std::vector<float>& rewards,
                       const std::vector<float>& alive,
                       const torch::Tensor& next_values);

  FramePolicy policy_;
  const PpoOptions options_;
  at::Generator random_;
  std::vector<BallGame> games_;
  torch::Tensor shown_;  // [games, stack, side, side] bytes, oldest frame first

  // The steps played, [steps * games, ...].
  torch::Tensor frames_;
  torch::Tensor actions_;
  torch::Tensor log_probabilities_;
  torch::Tensor values_;
  torch::Tensor returns_;
  torch::Tensor advantages_;
  double mean_reward_ = 0;

  int64_t update_ = 0;
  std::vector<torch::Tensor> parts_;  // index parts of the current pass
};

}  // namespace hvdlite::trainers
