// Which thread makes progress, where it runs, and how it sleeps and is woken.
#pragma once

#include <time.h>

#include <algorithm>
#include <atomic>
#include <cstdint>
#include <functional>
#include <optional>
#include <thread>
#include <utility>

#include "absl/functional/function_ref.h"
#include "absl/time/time.h"
#include "absl/types/span.h"
#include "base/descriptor.h"
#include "base/logging.h"
#include "base/mutex.h"

namespace hvdlite::negotiation {

// The progress lock: whoever holds it coordinates. By application
// threads that wait, first, else by the background thread. Unlike a mutex it
// can be waited for until something else has happened. Thread-safe.
class ProgressLock {
 public:
  // The lock's holder, from when it was acquired until its end; an empty one
  // holds nothing.
  class [[nodiscard]] Hold {
   public:
    Hold() = default;
    Hold(Hold&& other) noexcept : lock_(std::exchange(other.lock_, nullptr)) {}
    Hold& operator=(Hold&& other) noexcept {
      Release();
      lock_ = std::exchange(other.lock_, nullptr);
      return *this;
    }
    ~Hold() { Release(); }

    explicit operator bool() const { return lock_ != nullptr; }
    void Release() {
      if (lock_ != nullptr) std::exchange(lock_, nullptr)->Release();
    }

   private:
    friend class ProgressLock;
    explicit Hold(ProgressLock* lock) : lock_(lock) {}
    ProgressLock* lock_ = nullptr;
  };

  // For an application thread. Blocks until the lock is free, or `done` says so
  // or `timeout` is over (empty). `done` is looked at again after every
  // Recheck(); it must not touch the lock. For `spin` it looks again at once:
  // who holds the lock often releases it soon.
  Hold AcquireUnless(absl::FunctionRef<bool()> done, absl::Duration timeout,
                     absl::Duration spin = absl::ZeroDuration());
  // Empty: somebody holds it.
  Hold TryAcquire();

  // For the background thread: waits until the lock is free and no application
  // thread wants it. Empty: stopped.
  Hold AcquireInBackground();

  // Conditions that waiters wait for may have changed.
  void Recheck();

  // An application thread waits for the lock.
  bool wanted() const;

  void StopBackground();

 private:
  void Release();

  mutable base::Mutex mutex_;
  base::CondVar changed_;
  bool held_ ABSL_GUARDED_BY(mutex_) = false;
  bool stopped_ ABSL_GUARDED_BY(mutex_) = false;
  int waiters_ ABSL_GUARDED_BY(mutex_) = 0;
};

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

  // Gives the descriptor back. Nobody uses the event any more.
  void Close() { descriptor_ = base::Descriptor(); }

 private:
  base::Descriptor descriptor_;
  std::atomic<bool> signalled_{false};
};

// Whether the background thread naps, a little at a time, instead of sleeping
// until it is woken: where it was woken for what an application thread, which
// waits again and again, took in by itself, being woken each time would cost
// both threads, and the peers that ring, more than an operation takes. Used by
// whoever holds the progress lock.
class Napping {
 public:
  // The background thread is about to sleep: `progress`: it has found something
  // to do since the last time; `waits`: how often application threads have
  // taken the progress lock over so far. Naps until none has in between.
  void Decide(bool progress, uint64_t waits) {
    const bool others_waited = std::exchange(waits_seen_, waits) != waits;
    naps_ = (naps_ || !progress) && others_waited;
  }
  bool naps() const { return naps_; }

 private:
  uint64_t waits_seen_ = 0;
  bool naps_ = false;
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
