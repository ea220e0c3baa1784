#include "trainers/synthetic/games.h"

#include <algorithm>
#include <cmath>
#include <numbers>

#include "trainers/models/policies.h"

namespace hvdlite::trainers {
namespace {

constexpr double kGravity = 9.8;     // m/s^2
constexpr double kCartMass = 1.0;    // kg
constexpr double kPoleMass = 0.1;    // kg
constexpr double kHalfLength = 0.5;  // m, half of the pole
constexpr double kPush = 10.0;       // N
constexpr double kStepSeconds = 0.02;
constexpr double kMostDistance = 2.4;  // m
constexpr double kMostAngle = 12 * std::numbers::pi / 180;
constexpr int64_t kMostSteps = 200;

constexpr int64_t kBallSide = 3;  // pixels, like the lengths below
constexpr int64_t kBallFall = 2;  // per step
constexpr int64_t kPaddleWidth = 14;
constexpr int64_t kPaddleHeight = 2;
constexpr int64_t kPaddleSpeed = 3;
constexpr int64_t kPaddleY = kFrameSide - kPaddleHeight;
constexpr uint8_t kWhite = 255;

// Fills a rectangle, which must be inside the frame.
void Fill(std::span<uint8_t> frame, int64_t left, int64_t top, int64_t width,
          int64_t height) {
  for (int64_t y = top; y < top + height; ++y) {
    std::fill_n(frame.begin() + y * kFrameSide + left, width, kWhite);
  }
}

}  // namespace

CartPole::CartPole(uint64_t seed) : random_{seed} { Begin(); }

void CartPole::Begin() {
  constexpr double kSpread = 0.05;
  for (float& value : state_) {
    value = static_cast<float>(kSpread * (2 * random_.Uniform() - 1));
  }
  steps_ = 0;
}

CartPole::State CartPole::Advance(const State& state, double force) {
  constexpr double kMass = kCartMass + kPoleMass;
  const auto [x, speed, angle, turn] = state;
  const double sine = std::sin(angle);
  const double cosine = std::cos(angle);
  const double common =
      (force + kPoleMass * kHalfLength * turn * turn * sine) / kMass;
  const double turn_change =
      (kGravity * sine - cosine * common) /
      (kHalfLength * (4.0 / 3.0 - kPoleMass * cosine * cosine / kMass));
  const double speed_change =
      common - kPoleMass * kHalfLength * turn_change * cosine / kMass;
  return {static_cast<float>(x + kStepSeconds * speed),
          static_cast<float>(speed + kStepSeconds * speed_change),
          static_cast<float>(angle + kStepSeconds * turn),
          static_cast<float>(turn + kStepSeconds * turn_change)};
}

Outcome CartPole::Step(int64_t action) {
  state_ = Advance(state_, action == 1 ? kPush : -kPush);
  const bool ended = ++steps_ == kMostSteps ||
                     std::abs(state_[0]) > kMostDistance ||
                     std::abs(state_[2]) > kMostAngle;
  if (ended) Begin();
  return {.reward = 1, .ended = ended};
}

BallGame::BallGame(uint64_t seed) : random_{seed} { Begin(); }

void BallGame::Begin() {
  ball_x_ = static_cast<int64_t>(random_.Below(kFrameSide - kBallSide + 1));
  ball_y_ = 0;
  ball_speed_x_ = static_cast<int64_t>(random_.Below(5)) - 2;
  paddle_x_ = (kFrameSide - kPaddleWidth) / 2;
}

Outcome BallGame::Step(int64_t action) {
  if (action >= 2) {
    const int64_t change = action % 2 == 0 ? -kPaddleSpeed : kPaddleSpeed;
    paddle_x_ =
        std::clamp<int64_t>(paddle_x_ + change, 0, kFrameSide - kPaddleWidth);
  }
  ball_y_ += kBallFall;
  ball_x_ += ball_speed_x_;
  if (ball_x_ < 0 || ball_x_ > kFrameSide - kBallSide) {
    ball_speed_x_ = -ball_speed_x_;
    ball_x_ += 2 * ball_speed_x_;
  }
  if (ball_y_ + kBallSide < kPaddleY) return {};
  const bool caught =
      ball_x_ + kBallSide > paddle_x_ && ball_x_ < paddle_x_ + kPaddleWidth;
  Begin();
  return {.reward = caught ? 1.0F : -1.0F, .ended = true};
}

void BallGame::Draw(std::span<uint8_t> frame) const {
  std::fill(frame.begin(), frame.end(), uint8_t{0});
  Fill(frame, ball_x_, ball_y_, kBallSide, kBallSide);
  Fill(frame, paddle_x_, kPaddleY, kPaddleWidth, kPaddleHeight);
}

}  // namespace hvdlite::trainers
