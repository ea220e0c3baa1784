// Games that policies play, simulated.
#pragma once

#include <array>
#include <cstdint>
#include <span>

#include "base/keyed_random.h"

namespace hvdlite::trainers {

// What a step brought.
struct Outcome {
  float reward = 0;
  bool ended = false;  // the next state is the start of a new game
};

// A pole on a cart, which is pushed to the left or the right so that the pole
// stays up: Barto et al., "Neuronlike adaptive elements that can solve
// difficult learning control problems" (IEEE Transactions on Systems, Man, and
// Cybernetics, 1983), without friction, in Euler steps of 20 ms as in Gym's
// CartPole-v0. A game ends when the pole leans by 12 degrees, the cart has
// moved by 2.4 m, or after 200 steps; each step's reward is 1.
class CartPole {
 public:
  // Position (m), velocity, angle of the pole (radians), angular velocity.
  using State = std::array<float, 4>;

  explicit CartPole(uint64_t seed);

  const State& state() const { return state_; }
  // `action`: 0 pushes to the left, 1 to the right.
  Outcome Step(int64_t action);

  // The state after a push of that force (N), were it never a new game's.
  static State Advance(const State& state, double force);

 private:
  void Begin();

  base::KeyedRandom random_;
  State state_;
  int64_t steps_ = 0;
};

// A ball falls from the top of a frame of kFrameSide x kFrameSide pixels, and
// bounces off its sides; a paddle at the bottom is to catch it: 1 point, or -1.
// Then a new game begins. Not Atari's, whose emulator and licensed games are
// not here, but shown as those are to policies.
class BallGame {
 public:
  explicit BallGame(uint64_t seed);

  // `action`: 2 and 4 move the paddle to the left, 3 and 5 to the right, 0 and
  // 1 leave it.
  Outcome Step(int64_t action);

  // Draws the frame: kFrameSide * kFrameSide bytes, grey.
  void Draw(std::span<uint8_t> frame) const;

 private:
  void Begin();

  base::KeyedRandom random_;
  int64_t ball_x_ = 0;  // of its left upper pixel, as the rest
  int64_t ball_y_ = 0;
  int64_t ball_speed_x_ = 0;
  int64_t paddle_x_ = 0;
};

}  // namespace hvdlite::trainers
