#include "trainers/synthetic/reinforcement.h"

#include <ATen/CPUGeneratorImpl.h>
#include <gtest/gtest.h>
#include <torch/torch.h>

#include "trainers/synthetic/tasks.h"

namespace hvdlite::trainers {
namespace {

TEST(ReinforceTest, GamesGetLongerDuringTraining) {
  constexpr int64_t kSteps = 400;
  torch::manual_seed(1);
  CartPolePolicy policy;
  CartPole game(/*seed=*/1);
  const at::Generator random = at::detail::createCPUGenerator(1);
  torch::optim::Adam adam(policy->parameters(),
                          torch::optim::AdamOptions(0.01));
  const auto games_in_ten_batches = [&] {
    int64_t games = 0;
    for (int i = 0; i < 10; ++i) {
      const Played played = PlayCartPole(policy, game, kSteps, random);
      games += played.games;
      adam.zero_grad();
      played.loss.backward();
      adam.step();
    }
    return games;
  };
  const int64_t at_first = games_in_ten_batches();
  int64_t last = 0;
  for (int i = 0; i < 3; ++i) last = games_in_ten_batches();
  EXPECT_LT(2 * last, at_first);
}

TEST(PpoPlayerTest, PlaysOncePerBatch) {
  torch::manual_seed(1);
  FramePolicy policy;
  PpoPlayer player(policy, {.games = 1, .steps = 50});
  const double first = player.NextLoss().item<double>();
  const double reward = player.mean_reward();
  EXPECT_NE(reward, 0);  // a ball falls in fewer steps
  for (int64_t i = 1; i < PpoPlayer::kUpdates; ++i) {
    player.NextLoss();
    EXPECT_EQ(player.mean_reward(), reward);
  }
  EXPECT_TRUE(std::isfinite(first));
}

TEST(PpoPlayerTest, LossOfTheSameGamesFalls) {
  torch::manual_seed(1);
  FramePolicy policy;
  PpoPlayer player(policy, {.games = 4, .steps = 64});
  torch::optim::Adam adam(policy->parameters(),
                          torch::optim::AdamOptions(7e-4));
  double first_pass = 0;
  double last_pass = 0;
  for (int64_t i = 0; i < PpoPlayer::kUpdates; ++i) {
    const torch::Tensor loss = player.NextLoss();
    adam.zero_grad();
    loss.backward();
    adam.step();
    const double value = loss.item<double>();
    if (i < PpoPlayer::kMinibatches) first_pass += value;
    if (i >= PpoPlayer::kUpdates - PpoPlayer::kMinibatches) last_pass += value;
  }
  EXPECT_LT(last_pass, first_pass);
}

TEST(PpoPlayerTest, EqualSeedsGiveEqualGames) {
  const auto loss = [](uint64_t seed) {
    torch::manual_seed(1);
    FramePolicy policy;
    return PpoPlayer(policy, {.games = 1, .steps = 45, .seed = seed})
        .NextLoss()
        .item<double>();
  };
  EXPECT_EQ(loss(1), loss(1));
  EXPECT_NE(loss(1), loss(2));
}

}  // namespace
}  // namespace hvdlite::trainers
