#include "timeline/record/step_meter.h"

#include <algorithm>

namespace hvdlite::timeline {

void StepMeter::AddWork(int64_t amount) {
  base::MutexLock lock(&mutex_);
  work_ = std::max<int64_t>(work_, 0) + std::max<int64_t>(amount, 0);
}

void StepMeter::BeginWait() {
  base::MutexLock lock(&mutex_);
  if (thread_ == std::this_thread::get_id()) Count();
}

void StepMeter::EndWait() {
  base::MutexLock lock(&mutex_);
  if (thread_ == std::this_thread::get_id()) {
    counted_from_ns_ = thread_cpu_ns_();
  }
}

StepCost StepMeter::EndStep() {
  base::MutexLock lock(&mutex_);
  Count();
  const StepCost cost = {.work = work_,
                         .cpu_us = cpu_ns_ < 0 ? -1 : cpu_ns_ / 1000};
  work_ = -1;
  thread_ = std::this_thread::get_id();
  counted_from_ns_ = thread_cpu_ns_();
  cpu_ns_ = 0;
  return cost;
}

void StepMeter::Count() {
  if (thread_ != std::this_thread::get_id()) {
    cpu_ns_ = -1;
  } else if (cpu_ns_ >= 0) {
    cpu_ns_ += thread_cpu_ns_() - counted_from_ns_;
  }
}

}  // namespace hvdlite::timeline
