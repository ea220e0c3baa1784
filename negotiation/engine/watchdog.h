// Watchdog: looks from outside at the one phase in which a rank cannot look
// itself (see liveness.h).
#pragma once

#include <cstdint>
#include <functional>
#include <string>
#include <thread>

#include "absl/base/thread_annotations.h"
#include "absl/strings/string_view.h"
#include "absl/time/time.h"
#include "base/clock.h"
#include "base/mutex.h"

namespace hvdlite::negotiation {

// Looks from a thread of its own, which never calls MPI, whether the thread
// that coordinates comes back from a call of the data plane. Enter, Feed and
// Exit are called by that thread. Thread-safe.
class Watchdog {
 public:
  // What is entered.
  struct Call {
    absl::string_view what;  // kept by Enter()
    // Of a call that says so when it takes long: what it moves in all, and at
    // most at once.
    int64_t bytes = 0;
    int64_t chunk_bytes = 0;
  };
  // Called on the watchdog's thread (or Check's), under no lock.
  struct Slowness {
    absl::Duration after = absl::InfiniteDuration();
    // A call that moves bytes has not come back after `after`, and again after
    // twice that time, and so on; `text` says how fast it is.
    std::function<void(const std::string& text)> tell = {};
  };

  // `on_stuck` runs once at most, as Slowness::tell does: `what` was entered
  // and nothing happened for `deadline`. Infinite deadline: no thread, never.
  Watchdog(const base::Clock& clock, absl::Duration deadline,
           std::function<void(const std::string& what)> on_stuck,
           Slowness slowness);
  // As End().
  ~Watchdog();

  void Enter(const Call& call);
  // Still alive: so much of `bytes` has been moved since it was entered.
  void Feed(int64_t bytes_done);
  void Exit();

  // Ends the thread: nothing is called any more, and all has returned.
  void End();

  // What the thread does from time to time. Without memory for the text of a
  // slow call, that is left out.
  void Check() noexcept;

 private:
  void Loop();
  // What there is to say of a slow call; empty: nothing.
  std::string SlowText() ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_);

  const base::Clock& clock_;
  const absl::Duration deadline_;
  const std::function<void(const std::string&)> on_stuck_;
  const Slowness slowness_;
  base::Mutex mutex_;
  base::CondVar stop_changed_;
  bool stop_ ABSL_GUARDED_BY(mutex_) = false;
  bool inside_ ABSL_GUARDED_BY(mutex_) = false;
  bool fired_ ABSL_GUARDED_BY(mutex_) = false;
  int64_t entered_ns_ ABSL_GUARDED_BY(mutex_) = 0;
  int64_t last_sign_ns_ ABSL_GUARDED_BY(mutex_) = 0;
  int64_t bytes_done_ ABSL_GUARDED_BY(mutex_) = 0;
  absl::Duration told_after_ ABSL_GUARDED_BY(mutex_);  // of this call
  Call call_ ABSL_GUARDED_BY(mutex_);                  // of `what_`
  std::string what_ ABSL_GUARDED_BY(mutex_);
  std::thread thread_;
};

// While it lives, the watchdog's eye rests on `call`.
class Watched {
 public:
  Watched(Watchdog& watchdog, const Watchdog::Call& call)
      : watchdog_(watchdog) {
    watchdog_.Enter(call);
  }
  ~Watched() { watchdog_.Exit(); }
  Watched(const Watched&) = delete;
  Watched& operator=(const Watched&) = delete;

 private:
  Watchdog& watchdog_;
};

}  // namespace hvdlite::negotiation
