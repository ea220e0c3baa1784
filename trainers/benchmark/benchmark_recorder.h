// The times and losses of a benchmark.
#pragma once

#include <cstdint>
#include <deque>
#include <functional>
#include <optional>
#include <vector>

#include "tools/support/sample_statistics.h"
#include "trainers/benchmark/observation_plan.h"
#include "trainers/steady_seconds.h"

namespace hvdlite::trainers {

// Fed by the loop that trains, on one thread:
//
//   while (!recorder.done()) {
//     recorder.BeginObservation();
//     while (!recorder.AddBatch(TrainBatch())) {}
//   }
//
// What is done between observations is not timed.
class BenchmarkRecorder {
 public:
  // Losses that are kept, as many as the suite keeps.
  static constexpr int64_t kKeptLosses = 100;

  // Throws InputError for an invalid plan. `clock` returns seconds.
  explicit BenchmarkRecorder(const ObservationPlan& plan,
                             std::function<double()> clock = SteadySeconds);

  // Starts the observation's time. Throws std::logic_error within an
  // observation and when done.
  void BeginObservation();

  // The batch is computed, with this loss. Returns true, and stops the time,
  // after the observation's last batch. Throws std::logic_error outside of an
  // observation.
  bool AddBatch(double loss);

  // Whether all observations have been made.
  bool done() const { return observations_ == plan_.repeat; }

  const ObservationPlan& plan() const { return plan_; }

  // Seconds of each observation so far, less those left out.
  const std::vector<double>& observation_seconds() const { return seconds_; }

  // Of observation_seconds(); all zero if there are none.
  SampleStatistics train_seconds() const;

  // The last kKeptLosses, those of observations left out included.
  std::vector<double> batch_losses() const;

  // The first batch, counted from 0, whose loss was NaN or infinite.
  std::optional<int64_t> first_non_finite_batch() const {
    return first_non_finite_batch_;
  }

 private:
  ObservationPlan plan_;
  std::function<double()> clock_;
  std::optional<double> start_seconds_;  // of the current observation
  int64_t observations_ = 0;             // ended
  int64_t batches_ = 0;                  // of all observations
  std::vector<double> seconds_;          // of observations not left out
  std::deque<double> losses_;
  std::optional<int64_t> first_non_finite_batch_;
};

}  // namespace hvdlite::trainers
