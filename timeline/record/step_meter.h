// Measures what a training step of this process costs besides time: its amount
// of work, and the CPU time of the thread that trains.
#pragma once

#include <cstdint>
#include <thread>

#include "absl/base/thread_annotations.h"
#include "base/clock.h"
#include "base/mutex.h"
#include "timeline/record/trace_event.h"

namespace hvdlite::timeline {

// Thread-safe. One thread trains and calls EndStep(). Waits of other threads do
// not count.
class StepMeter {
 public:
  explicit StepMeter(int64_t (*thread_cpu_ns)() = base::ThreadCpuNanos)
      : thread_cpu_ns_(thread_cpu_ns) {}

  // Adds work to the current step; amounts below 0 count as 0.
  void AddWork(int64_t amount);

  // While a Wait exists, the thread waits for gradients, and its CPU time does
  // not count.
  class Wait {
   public:
    explicit Wait(StepMeter& meter) : meter_(meter) { meter_.BeginWait(); }
    ~Wait() { meter_.EndWait(); }
    Wait(const Wait&) = delete;
    Wait& operator=(const Wait&) = delete;

   private:
    StepMeter& meter_;
  };

  // Ends the current step and begins the next. The CPU time is unknown for the
  // first step, and after another thread has taken over.
  StepCost EndStep();

 private:
  void BeginWait();
  void EndWait();
  // Adds the CPU time of the thread since the last call.
  void Count() ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_);

  int64_t (*const thread_cpu_ns_)();
  base::Mutex mutex_;
  int64_t work_ ABSL_GUARDED_BY(mutex_) = -1;
  std::thread::id thread_ ABSL_GUARDED_BY(mutex_);
  int64_t counted_from_ns_ ABSL_GUARDED_BY(mutex_) = 0;
  int64_t cpu_ns_ ABSL_GUARDED_BY(mutex_) = -1;  // -1: unknown
};

}  // namespace hvdlite::timeline
