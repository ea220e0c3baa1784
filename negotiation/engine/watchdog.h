// Watchdog watches the calls of the data plane from another thread: inside such
// a call, a rank cannot check on itself (see liveness.h).
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

// Detects that the thread with the progress lock does not return from a call of
// the data plane. Its own thread never calls MPI. Only the watched thread calls
// Enter, Feed and Exit. Thread-safe.
class Watchdog {
 public:
  // The call that is watched.
  struct Call {
    absl::string_view what;  // kept by Enter()
    // For a call that should report when it is slow: the bytes that it moves in
    // all, and at most at once. 0: it does not report.
    int64_t bytes = 0;
    int64_t chunk_bytes = 0;
  };
  // Called on the watchdog's thread (or Check's), under no lock.
  struct Slowness {
    absl::Duration after = absl::InfiniteDuration();
    // Called if a call that moves bytes has not returned after `after`, and
    // again after twice that time, and so on. `text` describes its speed.
    std::function<void(const std::string& text)> tell = {};
  };

  // `on_stuck` runs at most once, on the same threads as `tell`, if a call has
  // made no progress for `deadline`. Infinite deadline: there is no thread.
  Watchdog(const base::Clock& clock, absl::Duration deadline,
           std::function<void(const std::string& what)> on_stuck,
           Slowness slowness);
  // Calls End().
  ~Watchdog();

  void Enter(const Call& call);
  // Reports progress: `bytes_done` of Call::bytes have been moved since Enter.
  void Feed(int64_t bytes_done);
  void Exit();

  // Ends the thread. After this, no function is called or still running.
  void End();

  // The thread calls this from time to time. If there is no memory for the text
  // about a slow call, the text is left out.
  void Check() noexcept;

 private:
  void Loop();
  // Text about a slow call; empty if there is nothing to report.
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

// The watchdog watches `call` for the lifetime of this object.
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
