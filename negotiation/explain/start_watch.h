// StartWatch ends a process that has waited too long for other ranks at its
// start.
#pragma once

#include <cstdint>
#include <functional>
#include <string>
#include <thread>

#include "absl/base/thread_annotations.h"
#include "absl/time/time.h"
#include "base/clock.h"
#include "base/mutex.h"

namespace hvdlite::internal {

// While a world starts, ranks wait for one another inside calls of MPI, which
// cannot be interrupted. If a rank is missing or stopped, they would wait for
// ever. So another thread, which never calls MPI, measures the time from this
// object's construction to its destruction. Time in which this process itself
// was suspended does not count. Thread-safe.
class StartWatch {
 public:
  // Each is called once at most, on the watch's thread (or Check's), under no
  // lock.
  struct Reactions {
    std::function<void(const std::string& text)> warn;  // after half the limit
    std::function<void(const std::string& text)> end;   // after `limit`
  };
  // `process` names this process: "rank 3 (node1)". Infinite limit: there is no
  // thread.
  StartWatch(const base::Clock& clock, absl::Duration limit,
             std::string process, Reactions reactions);
  ~StartWatch();
  StartWatch(const StartWatch&) = delete;
  StartWatch& operator=(const StartWatch&) = delete;

  // Sets what this rank does now, and what it waits for, as far as known: ("the
  // bootstrap", "rank 1").
  void Enter(std::string stage, std::string awaited);
  // The same, once all ranks have been seen in init().
  void Enter(std::string stage);

  // The thread calls this from time to time.
  void Check();

 private:
  void Loop();

  const base::Clock& clock_;
  const absl::Duration limit_;
  const absl::Duration interval_;  // between two checks
  const std::string process_;
  const std::string short_text_;  // for when there is no memory
  const Reactions reactions_;
  base::Mutex mutex_;
  base::CondVar stop_changed_;
  bool stop_ ABSL_GUARDED_BY(mutex_) = false;
  bool warned_ ABSL_GUARDED_BY(mutex_) = false;
  bool ended_ ABSL_GUARDED_BY(mutex_) = false;
  int64_t looked_ns_ ABSL_GUARDED_BY(mutex_);
  absl::Duration waited_ ABSL_GUARDED_BY(mutex_);
  std::string stage_ ABSL_GUARDED_BY(mutex_) = "its first stage";
  std::string awaited_ ABSL_GUARDED_BY(mutex_) = "no other rank";
  std::thread thread_;
};

}  // namespace hvdlite::internal
