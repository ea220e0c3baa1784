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

// Coordinates while the application computes: a thread named "hvdlite" that
// gets its core soon after it is woken.
class BackgroundThread {
 public:
  // Runs `body`, on `cpu` if there is one. Where the thread cannot be bound,
  // `logger`, which outlives it, warns, and it runs wherever this process may.
  BackgroundThread(std::function<void()> body, std::optional<int> cpu,
                   const base::Logger& logger);
  // Waits for the end of `body`.
  ~BackgroundThread() { Join(); }

  // Waits for the end of `body`; again: does nothing. One thread at a time.
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

// How the coordinator sleeps and is woken: an eventfd that remembers one
// signal. Signal and Sleep are thread-safe; Drain is for whoever holds the
// progress lock.
class WakeEvent {
 public:
  WakeEvent();  // throws std::system_error when there are no descriptors left

  void Signal();
  bool signalled() const { return signalled_.load(); }

  // Forgets the signal. What was made known before a Signal() that this
  // swallows is visible to the caller afterwards.
  void Drain();

  // Until there is a signal or one of `descriptors` is readable (true), or for
  // `timeout` (false). Without memory for it: true, after 1 ms at most.
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
    int yields = 0;        // first looks without a pause, only sched_yield
    absl::Duration first;  // pause
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

  // Zero: yield the processor instead.
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
