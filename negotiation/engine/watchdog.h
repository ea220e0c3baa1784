// Watchdog: looks from outside at the one phase in which a rank cannot look
// itself (see liveness.h).
#pragma once

#include <cstdint>
#include <functional>
#include <string>
#include <thread>
#include <utility>

#include "absl/base/thread_annotations.h"
#include "absl/time/time.h"
#include "base/clock.h"
#include "base/mutex.h"

namespace hvdlite::negotiation {

// Looks from a thread of its own, which never calls MPI, whether the thread
// that coordinates comes back from a call of the data plane. Enter, Feed and
// Exit are called by that thread. Thread-safe.
class Watchdog {
 public:
  // `on_stuck` runs once at most, on the watchdog's thread (or Check's), under
  // no lock: `what` was entered and nothing happened for `deadline`. Infinite
  // deadline: no thread, never.
  Watchdog(const base::Clock& clock, absl::Duration deadline,
           std::function<void(const std::string& what)> on_stuck);
  // As End().
  ~Watchdog();

  void Enter(std::string what);
  void Feed();  // still alive
  void Exit();

  // Ends the thread: on_stuck does not run any more, and has returned.
  void End();

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

// While it lives, the watchdog's eye rests on `what`.
class Watched {
 public:
  Watched(Watchdog& watchdog, std::string what) : watchdog_(watchdog) {
    watchdog_.Enter(std::move(what));
  }
  ~Watched() { watchdog_.Exit(); }
  Watched(const Watched&) = delete;
  Watched& operator=(const Watched&) = delete;

 private:
  Watchdog& watchdog_;
};

}  // namespace hvdlite::negotiation
