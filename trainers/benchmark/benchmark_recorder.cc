#include "trainers/benchmark/benchmark_recorder.h"

#include <chrono>
#include <cmath>
#include <stdexcept>
#include <utility>

namespace hvdlite::trainers {

double SteadySeconds() {
  return std::chrono::duration<double>(
             std::chrono::steady_clock::now().time_since_epoch())
      .count();
}

BenchmarkRecorder::BenchmarkRecorder(const ObservationPlan& plan,
                                     std::function<double()> clock)
    : plan_(plan), clock_(std::move(clock)) {
  RequireValid(plan);
}

void BenchmarkRecorder::BeginObservation() {
  if (start_seconds_) throw std::logic_error("the observation has not ended");
  if (done()) throw std::logic_error("all observations have been made");
  start_seconds_ = clock_();
}

bool BenchmarkRecorder::AddBatch(double loss) {
  if (!start_seconds_) throw std::logic_error("no observation has begun");
  const bool last = (batches_ + 1) % plan_.number == 0;
  if (last) {
    const double seconds = clock_() - *start_seconds_;
    start_seconds_.reset();
    if (++observations_ > plan_.skip) seconds_.push_back(seconds);
  }
  if (!std::isfinite(loss) && !first_non_finite_batch_) {
    first_non_finite_batch_ = batches_;
  }
  ++batches_;
  losses_.push_back(loss);
  if (std::ssize(losses_) > kKeptLosses) losses_.pop_front();
  return last;
}

SampleStatistics BenchmarkRecorder::train_seconds() const {
  return seconds_.empty() ? SampleStatistics{} : StatisticsOf(seconds_);
}

std::vector<double> BenchmarkRecorder::batch_losses() const {
  return {losses_.begin(), losses_.end()};
}

}  // namespace hvdlite::trainers
