// ProgressLoop: who may run the protocol on this rank, who sleeps where, and
// who wakes whom.
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

// One thread at a time runs the protocol, round by round (Rounds): it holds
// the progress lock.
//
// - An application thread that waits for something (RunUntil) runs it until
//   that is done. While nothing happens it looks again at once, for
//   `spin_while_waiting`, then yields, then sleeps in ppoll on the loop's event
//   and the channel's descriptors, and keeps the lock.
// - More application threads that wait sleep on a condition variable until the
//   lock is free, or the first has brought about what they wait for.
// - The background thread runs it while nobody waits. It sleeps in the same
//   ppoll without the lock, so that who waits takes over without waking it.
//   Where it was woken for what an application thread, which waits again and
//   again, took in by itself, it naps a little at a time until nobody has
//   waited for a nap: being woken each time would cost both threads, and the
//   peers that ring, more than an operation takes.
//
// Wake() ends whichever ppoll there is. Who gives the lock back wakes the
// background thread if there is something left for it.
//
// What throws in a round breaks the world, and goes no further. Thread-safe but
// for Stop, Close and cpu_time, which one thread calls.
class ProgressLoop {
 public:
  // What it needs to hear from the coordinator, and tells it.
  struct Hooks {
    // Why the world is broken once this rank has no memory left.
    absl::Status no_memory;
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
  ProgressLoop(const CoordinatorOptions& options,
               const CoordinatorEnvironment& environment,
               OperationTable& operations, Hooks hooks);
  ~ProgressLoop();  // after Close()

  // Runs the protocol until `done`, if no other thread does, or waits until
  // that has brought it about; false after `timeout`. `done` is called with
  // locks held: it only looks.
  bool RunUntil(absl::FunctionRef<bool()> done, absl::Duration timeout);

  // There is something to take in.
  void Wake() { wake_.Signal(); }
  // All who wait look again: the world is broken.
  void WakeAll();

  // As Negotiator::AskEverybody, a moment later. For any thread, and for signal
  // handlers.
  void AskEverybody();

  // As Rounds::Abort. False: the thread that runs the protocol has not come
  // back within `patience`.
  bool Abort(const absl::Status& status, absl::Duration patience);

  // The background thread ends. `joins`: waits for it.
  void Stop(bool joins);
  // Nothing is run any more, or called. Only the first call counts.
  void Close();

  // The thread that runs the protocol, if one does, is the application's.
  bool application_runs() const { return application_runs_.load(); }
  // All ranks have come to the end of the world. Before Close().
  bool shut_down() const;
  // CPU time that all this has taken so far, over all threads. Before Close().
  absl::Duration cpu_time() const;

  // Whether the background thread is to nap. `napped`: it did so last;
  // `found`: it has found something to do since; `waited`: so have application
  // threads.
  static bool Naps(bool napped, bool found, bool waited) {
    return (napped || !found) && waited;
  }

 private:
  // ---- The progress lock. Unlike a mutex it can be waited for until something
  // else has happened; application threads come first.
  // Until it is free, or `done` says so or `timeout` is over (false).
  bool AcquireUnless(absl::FunctionRef<bool()> done, absl::Duration timeout,
                     absl::Duration spin);
  bool TryAcquire();
  // False: stopped.
  bool AcquireInBackground();
  void Release();
  // What waiters wait for may have come about.
  void Recheck();
  bool wanted() const;

  // ---- Whoever holds it.
  // Where all progress begins: `work`, if the world is not broken, which breaks
  // if that throws. True unless it is broken then.
  bool Run(absl::FunctionRef<void()> work) noexcept;
  bool Drive();
  // Makes progress until `done`, or `time_left` says that there is none. Adds
  // the time asleep to `idle_ns`.
  void DriveUntil(absl::FunctionRef<bool()> done,
                  absl::FunctionRef<absl::Duration()> time_left,
                  int64_t& idle_ns);
  // Wakes the background thread if there is something left for it.
  void HandBack(bool done);

  // ---- The background thread.
  void RunInBackground();
  // Sleeps until the lock is free for it, and holds it then (true), or somebody
  // wakes it.
  bool Nap();

  bool broken() const { return broken_.load(); }

  const CoordinatorOptions& options_;
  const CoordinatorEnvironment& environment_;
  OperationTable& operations_;
  const std::atomic<bool>& broken_;
  const std::vector<int> wake_descriptors_;
  WakeEvent wake_;
  std::atomic<bool> application_runs_{false};
  std::atomic<int64_t> application_ns_{0};  // running it, asleep not counted

  mutable base::Mutex mutex_;
  base::CondVar changed_;
  bool held_ ABSL_GUARDED_BY(mutex_) = false;
  bool stopped_ ABSL_GUARDED_BY(mutex_) = false;
  int waiters_ ABSL_GUARDED_BY(mutex_) = 0;

  // Owned by whoever holds the progress lock.
  uint64_t application_waits_ = 0;  // how often it took the lock over
  uint64_t waits_seen_ = 0;         // by the background thread
  bool naps_ = false;
  int64_t background_sleeps_until_ns_ = 0;
  bool threw_ = false;                            // rounds_ is damaged
  std::unique_ptr<Rounds> rounds_;                // null once closed
  std::unique_ptr<BackgroundThread> background_;  // ended before all others
};

}  // namespace hvdlite::negotiation
