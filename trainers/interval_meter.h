// Speed and loss of training, interval by interval.
#pragma once

#include <chrono>
#include <cstdint>
#include <vector>

namespace hvdlite::trainers {

// Measures this rank alone. The clock runs from Start() to Finish(), so that
// evaluations and checkpoints in between do not count. Intervals without a step
// are left out.
class IntervalMeter {
 public:
  void Start();
  void AddStep(int64_t items, double loss);
  // Ends the interval; Start() begins the next one.
  void Finish();

  // Of the finished intervals.
  const std::vector<double>& items_per_second() const { return speeds_; }
  const std::vector<double>& losses() const { return losses_; }  // means
  double seconds() const { return seconds_; }

  // Of the current interval.
  int64_t interval_steps() const { return interval_steps_; }

  // Replaces the last interval's loss, by its mean over the ranks.
  void SetLastLoss(double loss) { losses_.back() = loss; }

 private:
  std::chrono::steady_clock::time_point start_;
  int64_t interval_steps_ = 0;
  int64_t interval_items_ = 0;
  double interval_loss_ = 0;  // sum over the steps
  std::vector<double> speeds_;
  std::vector<double> losses_;
  double seconds_ = 0;
};

}  // namespace hvdlite::trainers
