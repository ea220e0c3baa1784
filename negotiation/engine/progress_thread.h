// The background thread, how it sleeps, and how it is woken.
#pragma once

#include <time.h>

#include <algorithm>
#include <atomic>
#include <cstdint>
#include <functional>
#include <optional>
#include <thread>

#include "absl/time/time.h"
#include "absl/types/span.h"
#include "base/descriptor.h"
#include "base/logging.h"
#include "base/mutex.h"

namespace hvdlite::negotiation {

// A thread named "hvdlite" that runs the protocol while the application
// computes. It gets its core soon after it is woken.
class BackgroundThread {
 public:
  // Runs `body`, on `cpu` if given. If the thread cannot be bound, it logs a
  // warning and inherits the CPUs of this process. `logger` must outlive it.
  BackgroundThread(std::function<void()> body, std::optional<int> cpu,
                   const base::Logger& logger);
  // Waits for the end of `body`.
  ~BackgroundThread() { Join(); }

  // Waits for the end of `body`. A second call does nothing. One thread at a
  // time.
  void Join();

  // Its CPU time so far, or until its end. Thread-safe.
  absl::Duration cpu_time() const;

 private:
  mutable base::Mutex mutex_;
  bool runs_ ABSL_GUARDED_BY(mutex_) = true;
  int64_t cpu_ns_at_end_ ABSL_GUARDED_BY(mutex_) = 0;
  std::thread thread_;
  clockid_t cpu_clock_ = CLOCK_THREAD_CPUTIME_ID;
};

// Lets the coordinator sleep until it is woken: an eventfd that remembers one
// signal. Signal and Sleep are thread-safe. Only the thread that holds the
// progress lock may call Drain.
class WakeEvent {
 public:
  WakeEvent();  // throws std::system_error if there are no descriptors left

  void Signal();
  bool signalled() const { return signalled_.load(); }

  // Clears the signal. Data written before a cleared Signal() is visible to the
  // caller afterwards.
  void Drain();

  // Sleeps until there is a signal or one of `descriptors` is readable (true),
  // or for `timeout` (false). Without memory it returns true after at most 1
  // ms.
  bool Sleep(absl::Span<const int> descriptors,
             absl::Duration timeout) const noexcept;

 private:
  base::Descriptor descriptor_;
  std::atomic<bool> signalled_{false};
};

// Pauses that grow while nothing happens.
class Backoff {
 public:
  struct Options {
    int yields = 0;        // first, with sched_yield instead of a pause
    absl::Duration first;  // first pause
    absl::Duration longest;
  };
  explicit Backoff(const Options& options)
      : options_(options),
        yields_left_(options.yields),
        pause_(options.first) {}

  void Reset() {
    yields_left_ = options_.yields;
    pause_ = options_.first;
  }
  bool is_short() const { return pause_ < options_.longest; }

  // Returns zero to yield the processor instead.
  absl::Duration Next() {
    if (yields_left_ > 0) {
      --yields_left_;
      return absl::ZeroDuration();
    }
    const absl::Duration pause = std::min(pause_, options_.longest);
    pause_ = std::min(pause_ * 2, options_.longest);
    return pause;
  }

 private:
  const Options options_;
  int yields_left_;
  absl::Duration pause_;
};

}  // namespace hvdlite::negotiation
