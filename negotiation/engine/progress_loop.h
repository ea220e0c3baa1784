// ProgressLoop decides which thread may run the protocol on this rank, where
// threads sleep, and which thread wakes which.
#pragma once

#include <atomic>
#include <cstdint>
#include <functional>
#include <memory>
#include <string>
#include <vector>

#include "absl/base/thread_annotations.h"
#include "absl/functional/function_ref.h"
#include "absl/status/status.h"
#include "absl/time/time.h"
#include "base/mutex.h"
#include "negotiation/engine/operation_table.h"
#include "negotiation/engine/progress_thread.h"

namespace hvdlite::negotiation {

class Rounds;

// One thread at a time runs the protocol, round by round (Rounds): it holds the
// progress lock.
//
// - An application thread that waits for something (RunUntil) runs the protocol
//   until that is done. While nothing happens, it spins for
//   `spin_while_waiting`, then yields, then sleeps in ppoll on the loop's event
//   and the channel's descriptors. It keeps the lock.
// - Other application threads that wait sleep on a condition variable until the
//   lock is free, or the first thread has brought about what they wait for.
// - The background thread runs the protocol while no thread waits. It sleeps in
//   the same ppoll without the lock, so that a waiting thread takes over
//   without waking it.
// - If application threads wait again and again, wake-ups of the background
//   thread are useless: the waiting threads do its work. Each wake-up costs
//   both threads, and the peers that ring, more than an operation takes. After
//   a useless wake-up it therefore sleeps 200 us at a time (naps) until a nap
//   passes in which no thread has waited.
//
// Wake() ends either ppoll. A thread that releases the lock wakes the
// background thread if work is left.
//
// An exception in a round breaks the world and is not passed on. All functions
// are thread-safe, except Stop, Close and cpu_time: one thread calls these.
class ProgressLoop {
 public:
  // Connects the loop to the coordinator.
  struct Hooks {
    // Why the world is broken once this rank has no memory left.
    absl::Status no_memory;
    // The world is broken: nothing is sent or run any more.
    const std::atomic<bool>& broken;
    std::function<void(const absl::Status& status)> break_world;
    // All ranks have left. False: this rank does not end yet.
    std::function<bool()> come_to_end;
    // The thread that runs the protocol has not returned from `what`, a call of
    // the data plane. Called on the watchdog's thread.
    std::function<void(const std::string& what)> stuck;
  };
  // References must outlive the loop.
  ProgressLoop(const CoordinatorOptions& options,
               const CoordinatorEnvironment& environment,
               OperationTable& operations, Hooks hooks);
  ~ProgressLoop();  // after Close()

  // Runs the protocol until `done`; if another thread runs it, waits for that
  // thread instead. Returns false after `timeout`. `done` is called with locks
  // held: it must only look.
  bool RunUntil(absl::FunctionRef<bool()> done, absl::Duration timeout);

  // There is something to take in.
  void Wake() { wake_.Signal(); }
  // All waiting threads look again: the world is broken.
  void WakeAll();

  // Calls Negotiator::AskEverybody a moment later. Any thread and any signal
  // handler may call it.
  void AskEverybody();

  // Calls Rounds::Abort. False: the thread that runs the protocol has not
  // returned within `patience`.
  bool Abort(const absl::Status& status, absl::Duration patience);

  // Ends the background thread. `joins`: waits for its end.
  void Stop(bool joins);
  // Nothing is run or called any more. Only the first call counts.
  void Close();

  // Whether an application thread runs the protocol now.
  bool application_runs() const { return application_runs_.load(); }
  // All ranks have reached the end of the world. Call it before Close().
  bool shut_down() const;
  // The CPU time of the loop so far, over all threads. Call it before Close().
  absl::Duration cpu_time() const;

  // Whether the background thread should nap. `napped`: its last sleep was a
  // nap; `found`: it has found something to do since; `waited`: application
  // threads have waited since.
  static bool Naps(bool napped, bool found, bool waited) {
    return (napped || !found) && waited;
  }

 private:
  // ---- The progress lock. Unlike for a mutex, a thread can stop waiting for
  // it when something else has happened. Application threads come first.
  // Waits until the lock is free (true), `done` returns true, or `timeout` has
  // passed (false).
  bool AcquireUnless(absl::FunctionRef<bool()> done, absl::Duration timeout,
                     absl::Duration spin);
  bool TryAcquire();
  // False: stopped.
  bool AcquireInBackground();
  void Release();
  // What waiting threads wait for may have happened.
  void Recheck();
  bool wanted() const;

  // ---- Functions for the thread that holds the lock.
  // Does `work` if the world is not broken. An exception breaks the world.
  // Returns false if the world is broken in the end.
  bool Run(absl::FunctionRef<void()> work) noexcept;
  bool Drive();
  // Makes progress until `done`, or until `time_left` returns zero. Adds the
  // time asleep to `idle_ns`.
  void DriveUntil(absl::FunctionRef<bool()> done,
                  absl::FunctionRef<absl::Duration()> time_left,
                  int64_t& idle_ns);
  // Wakes the background thread if work is left for it.
  void HandBack(bool done);

  // ---- The background thread.
  void RunInBackground();
  // Sleeps until the lock is free and takes it (true), or until it is woken.
  bool Nap();

  bool broken() const { return broken_.load(); }

  const CoordinatorOptions& options_;
  const CoordinatorEnvironment& environment_;
  OperationTable& operations_;
  const std::atomic<bool>& broken_;
  const std::vector<int> wake_descriptors_;
  WakeEvent wake_;
  std::atomic<bool> application_runs_{false};
  std::atomic<int64_t> application_ns_{0};  // running it, without sleep

  mutable base::Mutex mutex_;
  base::CondVar changed_;
  bool held_ ABSL_GUARDED_BY(mutex_) = false;
  bool stopped_ ABSL_GUARDED_BY(mutex_) = false;
  int waiters_ ABSL_GUARDED_BY(mutex_) = 0;

  // Owned by the thread that holds the progress lock.
  uint64_t application_waits_ = 0;  // how often one took the lock
  uint64_t waits_seen_ = 0;         // by the background thread
  bool naps_ = false;
  int64_t background_sleeps_until_ns_ = 0;
  bool threw_ = false;                            // rounds_ is damaged
  std::unique_ptr<Rounds> rounds_;                // null once closed
  std::unique_ptr<BackgroundThread> background_;  // ended before all others
};

}  // namespace hvdlite::negotiation
