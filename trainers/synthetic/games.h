// Simulated games that policies play.
#pragma once

#include <array>
#include <cstdint>
#include <span>

#include "base/keyed_random.h"

namespace hvdlite::trainers {

// The result of a step.
struct Outcome {
  float reward = 0;
  bool ended = false;  // the next state is the start of a new game
};

// A pole on a cart; pushes to the left or right keep the pole upright: Barto et
// al., "Neuronlike adaptive elements that can solve difficult learning control
// problems" (IEEE Transactions on Systems, Man, and Cybernetics, 1983), without
// friction, in Euler steps of 20 ms as in Gym's CartPole-v0. A game ends when
// the pole leans by 12 degrees, the cart has moved by 2.4 m, or after 200
// steps. Each step's reward is 1.
class CartPole {
 public:
  // Position (m), velocity, angle of the pole (radians), angular velocity.
  using State = std::array<float, 4>;

  explicit CartPole(uint64_t seed);

  const State& state() const { return state_; }
  // `action`: 0 pushes to the left, 1 to the right.
  Outcome Step(int64_t action);

  // The state after a push of this force (N), without the start of a new game.
  static State Advance(const State& state, double force);

 private:
  void Begin();

  base::KeyedRandom random_;
  State state_;
  int64_t steps_ = 0;
};

// A ball falls from the top of a frame of kFrameSide x kFrameSide pixels and
// bounces off its sides. A paddle at the bottom should catch it: 1 point, else
// -1. Then a new game begins. It shows frames as Atari's games do, whose
// emulator and licensed games are not available here.
class BallGame {
 public:
  explicit BallGame(uint64_t seed);

  // `action`: 2 and 4 move the paddle to the left, 3 and 5 to the right; 0 and
  // 1 do nothing.
  Outcome Step(int64_t action);

  // Draws the frame: kFrameSide * kFrameSide bytes, grey.
  void Draw(std::span<uint8_t> frame) const;

 private:
  void Begin();

  base::KeyedRandom random_;
  int64_t ball_x_ = 0;  // of its upper left pixel, likewise below
  int64_t ball_y_ = 0;
  int64_t ball_speed_x_ = 0;
  int64_t paddle_x_ = 0;
};

}  // namespace hvdlite::trainers
