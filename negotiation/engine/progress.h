// Progress: what whoever holds the progress lock does for this rank, round by
// round; and which thread that is, where it runs, and how it sleeps and is
// woken.
#pragma once

#include <time.h>

#include <algorithm>
#include <atomic>
#include <cstdint>
#include <functional>
#include <memory>
#include <optional>
#include <string>
#include <thread>
#include <utility>

#include "absl/functional/function_ref.h"
#include "absl/status/status.h"
#include "absl/time/time.h"
#include "absl/types/span.h"
#include "base/logging.h"
#include "base/mutex.h"
#include "negotiation/channel/control_channel.h"
#include "negotiation/engine/executor.h"
#include "negotiation/engine/operation_table.h"
#include "negotiation/engine/watchdog.h"
#include "negotiation/protocol/negotiator.h"
#include "torch_plugin/include/hvdlite/config.h"

namespace hvdlite::negotiation {

// The progress lock: whoever holds it coordinates. By application
// threads that wait, first, else by the background thread. Unlike a mutex it
// can be waited for until something else has happened. Thread-safe.
class ProgressLock {
 public:
  // For an application thread. Blocks until the lock is free (true: the caller
  // holds it) or `done` says so or `timeout` is over (false). `done` is
  // looked at again after every Recheck(); it must not touch the lock. For
  // `spin` it looks again at once: who holds the lock often releases it soon.
  bool AcquireUnless(absl::FunctionRef<bool()> done, absl::Duration timeout,
                     absl::Duration spin = absl::ZeroDuration());
  bool TryAcquire();

  // For the background thread: waits until the lock is free and no application
  // thread wants it. False: stopped.
  bool AcquireInBackground();

  void Release();

  // Conditions that waiters wait for may have changed.
  void Recheck();

  // An application thread waits for the lock.
  bool wanted() const;

  void StopBackground();

 private:
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
  ~WakeEvent();
  WakeEvent(const WakeEvent&) = delete;
  WakeEvent& operator=(const WakeEvent&) = delete;

  void Signal();
  bool signalled() const { return signalled_.load(); }

  // Forgets the signal. What was made known before a Signal() that this
  // swallows is visible to the caller afterwards.
  void Drain();

  // Until there is a signal or one of `descriptors` is readable (true), or for
  // `timeout` (false).
  bool Sleep(absl::Span<const int> descriptors, absl::Duration timeout) const;

 private:
  const int descriptor_;
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

// Brings together what this rank has submitted, the messages of the other
// ranks, the negotiation and the data plane. For whoever holds its lock(), but
// for wake() and shut_down().
class Progress {
 public:
  // What it needs to hear from the coordinator, and tells it.
  struct Hooks {
    // The world is broken: nothing is sent or run any more.
    const std::atomic<bool>& broken;
    std::function<void(const absl::Status& status)> break_world;
    // All ranks have left. False: this one does not end yet.
    std::function<bool()> come_to_end;
    // The thread that coordinates has not come back from `what`, a call of the
    // data plane. On the watchdog's thread.
    std::function<void(const std::string& what)> stuck;
  };
  // References outlive this.
  Progress(const Config& config, const CoordinatorEnvironment& environment,
           OperationTable& operations, Hooks hooks);

  ProgressLock& lock() { return lock_; }
  // Wakes the thread that coordinates, if it sleeps.
  WakeEvent& wake() { return wake_; }
  Napping& napping() { return napping_; }

  // One round: takes in what is new, executes at most one decision. True if
  // anything happened.
  bool Drive();

  // Prepares the channel for a sleep, taking in what keeps it from that; false
  // if more and more comes.
  bool Arm();

  // `pause`, or less where there is something to do before it is over.
  absl::Duration PauseUntilDeadline(absl::Duration pause) const;

  // Something is to be executed or sent, or the other ranks wait for what
  // this one may submit.
  bool has_work() const;

  // The data plane's transport has to be called before long, again and again.
  bool has_to_carry_on() const;

  // Breaks the world because of an error of this rank, and tells the others,
  // for which there is `patience`.
  void Abort(const absl::Status& status, absl::Duration patience);

  // As Negotiator::set_waits, Negotiator::set_asks and Executor::set_spin.
  void set_waits(bool waits) { negotiator_.set_waits(waits); }
  void set_asks(bool asks) { negotiator_.set_asks(asks); }
  void set_spin(absl::Duration spin) { executor_.set_spin(spin); }

  // As Negotiator::AskEverybody, a moment later. For any thread, and for signal
  // handlers.
  void AskEverybody() {
    asks_everybody_ = true;
    wake_.Signal();
  }

  // As Watchdog::End.
  void EndWatch() { watchdog_.End(); }

  // As Executor::AbandonProcessSets.
  void AbandonProcessSets() { executor_.AbandonProcessSets(); }

  // All ranks have come to the end of the world.
  bool shut_down() const { return shut_down_.load(); }

 private:
  bool broken() const { return hooks_.broken.load(); }
  // Takes in submissions and messages, and sends; true if there were any.
  bool ServeChannel();
  absl::Status ServeDuringBatch();
  // Communicator::MakeProgress, when it is time for it.
  void CarryOnDataPlane();
  absl::Status TakeIn(const ControlMessage& received);
  // What other ranks want to know of processes.
  void Explain();
  bool TakeInputs(int64_t now_ns);
  void SendOutgoing();
  // Before this rank falls silent.
  void Flush(absl::Duration patience);
  bool HasUndelivered() const {
    return environment_.channel.delivered() < negotiator_.handed_out();
  }
  void Execute(const Decision& decision);
  std::optional<uint32_t> Stage(const Decision& decision);

  const CoordinatorEnvironment& environment_;
  OperationTable& operations_;
  const Hooks hooks_;
  ProgressLock lock_;
  WakeEvent wake_;
  Napping napping_;
  std::atomic<bool> shut_down_{false};
  std::atomic<bool> asks_everybody_{false};
  int64_t carry_on_at_ns_;
  Backoff carry_on_pause_;
  OperationTable::Inputs inputs_;  // as they are taken in
  Negotiator negotiator_;
  Watchdog watchdog_;
  Executor executor_;
};

}  // namespace hvdlite::negotiation
