// Watchdog: notices that the coordinator does not come back from the data
// plane.
#pragma once

#include <cstdint>
#include <functional>
#include <string>
#include <thread>

#include "absl/time/time.h"
#include "base/clock.h"
#include "base/mutex.h"

namespace hvdlite::negotiation {

// Has a thread of its own, which never calls MPI. Enter, Feed and Exit are
// called by the thread that may get stuck. Thread-safe.
class Watchdog {
 public:
  // `on_stuck` runs once at most, on the watchdog's thread (or Check's), under
  // no lock: `what` was entered and nothing happened for `deadline`. Infinite
  // deadline: no thread, never.
  Watchdog(const base::Clock& clock, absl::Duration deadline,
           std::function<void(const std::string& what)> on_stuck);
  ~Watchdog();

  void Enter(std::string what);
  void Feed();  // still alive
  void Exit();

  // What the thread does from time to time.
  void Check();

 private:
  void Loop();

  const base::Clock& clock_;
  const absl::Duration deadline_;
  const std::function<void(const std::string&)> on_stuck_;
  base::Mutex mutex_;
  base::CondVar stop_changed_;
  bool stop_ ABSL_GUARDED_BY(mutex_) = false;
  bool inside_ ABSL_GUARDED_BY(mutex_) = false;
  bool fired_ ABSL_GUARDED_BY(mutex_) = false;
  int64_t last_sign_ns_ ABSL_GUARDED_BY(mutex_) = 0;
  std::string what_ ABSL_GUARDED_BY(mutex_);
  std::thread thread_;
};

}  // namespace hvdlite::negotiation
