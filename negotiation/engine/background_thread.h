// BackgroundThread: the thread that coordinates while the application computes.
#pragma once

#include <time.h>

#include <cstdint>
#include <functional>
#include <optional>
#include <thread>

#include "absl/time/time.h"
#include "base/logging.h"
#include "base/mutex.h"

namespace hvdlite::negotiation {

// A thread named "hvdlite" that gets its core soon after it is woken.
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

}  // namespace hvdlite::negotiation
