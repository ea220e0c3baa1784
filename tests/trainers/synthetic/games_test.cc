#include "trainers/synthetic/games.h"

#include <gtest/gtest.h>

#include <cmath>
#include <numeric>
#include <vector>

#include "trainers/models/policies.h"

namespace hvdlite::trainers {
namespace {

TEST(CartPoleTest, PushMovesCartAndPoleInOppositeDirections) {
  // The equations by hand: the mass is 1.1 kg, the pole's share 1/11.
  const CartPole::State pushed = CartPole::Advance({0, 0, 0, 0}, 10);
  const double turn = -(10 / 1.1) / (0.5 * (4.0 / 3 - 0.1 / 1.1));
  EXPECT_FLOAT_EQ(pushed[0], 0);
  EXPECT_NEAR(pushed[1], 0.02 * (10 / 1.1 - 0.05 * turn / 1.1), 1e-6);
  EXPECT_FLOAT_EQ(pushed[2], 0);
  EXPECT_NEAR(pushed[3], 0.02 * turn, 1e-6);
}

TEST(CartPoleTest, PositionsFollowSpeedsAndLeaningPoleFalls) {
  const CartPole::State next = CartPole::Advance({1, 2, 0.1F, 3}, 0);
  EXPECT_FLOAT_EQ(next[0], 1.04F);
  EXPECT_FLOAT_EQ(next[2], 0.16F);
  EXPECT_GT(next[3], 3);
}

// Returns the number of steps until a game ends.
int64_t Length(CartPole& game, int64_t (*action)(const CartPole::State&)) {
  for (int64_t steps = 1;; ++steps) {
    const Outcome outcome = game.Step(action(game.state()));
    EXPECT_EQ(outcome.reward, 1);
    if (outcome.ended) return steps;
  }
}

TEST(CartPoleTest, GoodPolicyLastsTwoHundredStepsAndBadOneFails) {
  CartPole game(/*seed=*/5);
  for (int i = 0; i < 20; ++i) {
    EXPECT_LT(Length(game, [](const CartPole::State&) { return int64_t{1}; }),
              12);
    for (const float value : game.state()) EXPECT_LE(std::abs(value), 0.05F);
    EXPECT_EQ(Length(game,
                     [](const CartPole::State& state) {
                       return int64_t{state[2] + 0.5F * state[3] > 0};
                     }),
              200);
  }
}

TEST(CartPoleTest, GamesDependOnTheSeed) {
  EXPECT_EQ(CartPole(1).state(), CartPole(1).state());
  EXPECT_NE(CartPole(1).state(), CartPole(2).state());
}

// The column of the upper left white pixel, in rows from `first` to `last`.
int64_t LeftOf(const std::vector<uint8_t>& frame, int64_t first, int64_t last) {
  for (int64_t i = first * kFrameSide; i < last * kFrameSide; ++i) {
    if (frame[static_cast<size_t>(i)] != 0) return i % kFrameSide;
  }
  return -1;
}

struct Score {
  int caught = 0;
  int missed = 0;
};

// Plays some games, using only the frames.
Score Play(bool follows_the_ball) {
  BallGame game(/*seed=*/3);
  std::vector<uint8_t> frame(kFrameSide * kFrameSide);
  Score score;
  while (score.caught + score.missed < 60) {
    game.Draw(frame);
    const int64_t ball = LeftOf(frame, 0, kFrameSide - 2);
    const int64_t paddle = LeftOf(frame, kFrameSide - 2, kFrameSide);
    EXPECT_GE(ball, 0);
    EXPECT_GE(paddle, 0);
    const int64_t action = ball < paddle + 4 ? 2 : (ball > paddle + 8 ? 3 : 0);
    const Outcome outcome = game.Step(follows_the_ball ? action : 1);
    EXPECT_EQ(outcome.ended, outcome.reward != 0);
    if (outcome.ended) ++(outcome.reward > 0 ? score.caught : score.missed);
  }
  return score;
}

TEST(BallGameTest, FollowingPaddleCatchesAndStandingPaddleMissesMost) {
  EXPECT_EQ(Play(/*follows_the_ball=*/true).missed, 0);
  EXPECT_GT(Play(/*follows_the_ball=*/false).missed, 30);
}

TEST(BallGameTest, FrameShowsOnlyBallAndPaddle) {
  const BallGame game(/*seed=*/3);
  std::vector<uint8_t> frame(kFrameSide * kFrameSide, 7);
  game.Draw(frame);
  EXPECT_EQ(std::accumulate(frame.begin(), frame.end(), 0),
            255 * (3 * 3 + 14 * 2));
}

}  // namespace
}  // namespace hvdlite::trainers
