#include "trainers/interval_meter.h"

namespace hvdlite::trainers {

void IntervalMeter::Start() {
  interval_steps_ = 0;
  interval_items_ = 0;
  interval_loss_ = 0;
  start_ = std::chrono::steady_clock::now();
}

void IntervalMeter::AddStep(int64_t items, double loss) {
  ++interval_steps_;
  interval_items_ += items;
  interval_loss_ += loss;
}

void IntervalMeter::Finish() {
  if (interval_steps_ == 0) return;
  const double seconds =
      std::chrono::duration<double>(std::chrono::steady_clock::now() - start_)
          .count();
  seconds_ += seconds;
  speeds_.push_back(static_cast<double>(interval_items_) / seconds);
  losses_.push_back(interval_loss_ / static_cast<double>(interval_steps_));
}

}  // namespace hvdlite::trainers
