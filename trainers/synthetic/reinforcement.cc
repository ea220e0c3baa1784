#include "trainers/synthetic/reinforcement.h"

#include <ATen/CPUGeneratorImpl.h>
#include <torch/torch.h>

#include <algorithm>
#include <memory>
#include <string>

#include "support/input_error.h"
#include "trainers/synthetic/tasks.h"

namespace hvdlite::trainers {
namespace {

constexpr double kDiscount = 0.99;
constexpr double kLambda = 0.95;
constexpr double kClip = 0.1;
constexpr double kValueWeight = 0.5;
constexpr double kEntropyWeight = 0.01;
constexpr double kTiny = 1e-5;

torch::Tensor Normalised(const torch::Tensor& values) {
  return (values - values.mean()) / (values.std() + kTiny);
}

torch::Tensor Draw(const torch::Tensor& log_probabilities,
                   const at::Generator& random) {
  return log_probabilities.detach().exp().multinomial(1, /*replacement=*/false,
                                                      random);
}

constexpr int64_t kFrameBytes = kFrameSide * kFrameSide;

}  // namespace

Played PlayCartPole(CartPolePolicy& policy, CartPole& game, int64_t steps,
                    const at::Generator& random) {
  Played played;
  std::vector<torch::Tensor> log_probabilities;
  std::vector<Outcome> outcomes;
  for (int64_t step = 0; step < steps; ++step) {
    CartPole::State state = game.state();
    const torch::Tensor input =
        torch::from_blob(state.data(), {1, std::ssize(state)}, torch::kFloat32)
            .clone();
    const torch::Tensor output = policy(input);
    const torch::Tensor action = Draw(output, random);
    log_probabilities.push_back(output.gather(1, action).flatten());
    outcomes.push_back(game.Step(action.item<int64_t>()));
    if (outcomes.back().ended) ++played.games;
  }
  torch::Tensor returns = torch::empty({steps});
  double sum = 0;
  for (int64_t step = steps - 1; step >= 0; --step) {
    const Outcome& outcome = outcomes[static_cast<size_t>(step)];
    sum = outcome.reward + (outcome.ended ? 0 : kDiscount * sum);
    returns.data_ptr<float>()[step] = static_cast<float>(sum);
  }
  played.loss =
      -(torch::cat(log_probabilities).to(torch::kFloat32) * Normalised(returns))
           .mean();
  return played;
}

PpoPlayer::PpoPlayer(FramePolicy policy, const PpoOptions& options)
    : policy_(std::move(policy)),
      options_(options),
      random_(at::detail::createCPUGenerator(options.seed)),
      shown_(torch::zeros({options.games, kFrameStack, kFrameSide, kFrameSide},
                          torch::kUInt8)) {
  base::KeyedRandom seeds{options.seed};
  for (int64_t i = 0; i < options.games; ++i) games_.emplace_back(seeds.Next());
  ShowFrames();
}

// Appends the games' current frames to the stacks.
void PpoPlayer::ShowFrames() {
  auto* stack = shown_.data_ptr<uint8_t>();
  for (const BallGame& game : games_) {
    std::copy(stack + kFrameBytes, stack + kFrameStack * kFrameBytes, stack);
    stack += (kFrameStack - 1) * kFrameBytes;
    game.Draw({stack, static_cast<size_t>(kFrameBytes)});
    stack += kFrameBytes;
  }
}

torch::Tensor PpoPlayer::NextLoss() {
  if (update_ % kUpdates == 0) Play();
  const int64_t part = update_++ % kMinibatches;
  if (part == 0) {
    parts_ = torch::randperm(actions_.size(0), random_, torch::kInt64)
                 .tensor_split(kMinibatches);
  }
  const auto of_part = [&](const torch::Tensor& played) {
    return played.index_select(0, parts_[static_cast<size_t>(part)]);
  };
  const PolicyOutput output = policy_(of_part(frames_));
  const torch::Tensor& log_probabilities = output.log_probabilities;
  const torch::Tensor ratio =
      (log_probabilities.gather(1, of_part(actions_)).squeeze(1) -
       of_part(log_probabilities_))
          .exp();
  const torch::Tensor advantages = of_part(advantages_);
  const torch::Tensor gain =
      torch::min(ratio * advantages,
                 ratio.clamp(1 - kClip, 1 + kClip) * advantages)
          .mean();

  const torch::Tensor before = of_part(values_);
  const torch::Tensor returns = of_part(returns_);
  const torch::Tensor clipped =
      before + (output.values - before).clamp(-kClip, kClip);
  const torch::Tensor of_values =
      0.5 * torch::max((output.values - returns).square(),
                       (clipped - returns).square())
                .mean();
  const torch::Tensor entropy =
      -(log_probabilities.exp() * log_probabilities).sum(1).mean();
  return kValueWeight * of_values - gain - kEntropyWeight * entropy;
}

void PpoPlayer::Play() {
  const torch::NoGradGuard no_grad;
  std::vector<torch::Tensor> frames;
  std::vector<torch::Tensor> actions;
  std::vector<torch::Tensor> log_probabilities;
  std::vector<torch::Tensor> values;
  std::vector<float> rewards;
  std::vector<float> alive;  // 0 if a game has ended
  for (int64_t step = 0; step < options_.steps; ++step) {
    const PolicyOutput output = policy_(shown_);
    const torch::Tensor action = Draw(output.log_probabilities, random_);
    frames.push_back(shown_.clone());
    actions.push_back(action);
    log_probabilities.push_back(
        output.log_probabilities.gather(1, action).squeeze(1));
    values.push_back(output.values);
    for (size_t i = 0; i < games_.size(); ++i) {
      const Outcome outcome = games_[i].Step(action.data_ptr<int64_t>()[i]);
      rewards.push_back(outcome.reward);
      alive.push_back(outcome.ended ? 0.0F : 1.0F);
    }
    ShowFrames();
  }
  frames_ = torch::cat(frames);
  actions_ = torch::cat(actions);
  log_probabilities_ = torch::cat(log_probabilities);
  values_ = torch::cat(values);
  EstimateReturns(rewards, alive, policy_(shown_).values);
}

void PpoPlayer::EstimateReturns(const std::vector<float>& rewards,
                                const std::vector<float>& alive,
                                const torch::Tensor& next_values) {
  const auto as_steps = [&](const std::vector<float>& numbers) {
    return torch::tensor(numbers).view({options_.steps, options_.games});
  };
  const torch::Tensor reward = as_steps(rewards);
  const torch::Tensor goes_on = as_steps(alive);
  const torch::Tensor value =
      torch::cat({values_.view_as(reward), next_values.unsqueeze(0)});
  torch::Tensor advantage = torch::zeros({options_.games});
  torch::Tensor returns = torch::empty_like(reward);
  for (int64_t step = options_.steps - 1; step >= 0; --step) {
    const torch::Tensor surprise = reward[step] +
                                   kDiscount * value[step + 1] * goes_on[step] -
                                   value[step];
    advantage = surprise + kDiscount * kLambda * goes_on[step] * advantage;
    returns[step].copy_(advantage + value[step]);
  }
  returns_ = returns.flatten();
  advantages_ = Normalised(returns_ - values_);
  const double ended = (1 - goes_on).sum().item<double>();
  mean_reward_ = reward.sum().item<double>() / std::max(ended, 1.0);
}

SyntheticTask MakeCartPoleTask(const SyntheticTaskOptions& options) {
  CartPolePolicy policy;
  const auto game = std::make_shared<CartPole>(options.seed);
  return {.model = policy.ptr(),
          .loss = [=, steps = options.batch_size,
                   random = GeneratorOf(options)]() mutable {
            return PlayCartPole(policy, *game, steps, random).loss;
          }};
}

SyntheticTask MakeBallGameTask(const SyntheticTaskOptions& options) {
  PpoOptions ppo = {.games = options.batch_size, .seed = options.seed};
  ppo.steps = SizeOr(options.sequence_length, ppo.steps);
  if (ppo.games * ppo.steps < PpoPlayer::kMinibatches) {
    throw support::InputError("a batch of " + std::to_string(ppo.games) +
                              " games of " + std::to_string(ppo.steps) +
                              " steps (--sequence-length) is too small; "
                              "--model ball_game needs " +
                              std::to_string(PpoPlayer::kMinibatches) +
                              " steps in all");
  }
  FramePolicy policy;
  const auto player = std::make_shared<PpoPlayer>(policy, ppo);
  return {.model = policy.ptr(),
          .loss = [player] { return player->NextLoss(); },
          .updates = PpoPlayer::kUpdates};
}

}  // namespace hvdlite::trainers
