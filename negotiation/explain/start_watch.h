// StartWatch: ends a process that waits in vain for other ranks at its start.
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
// nothing can interrupt: a rank that does not come, or is stopped, would have
// them wait for ever. So a thread of its own, which never calls MPI, looks how
// long that takes, from its construction to its destruction. Time in which this
// process did not run itself (its job was suspended) does not count.
// Thread-safe.
class StartWatch {
 public:
  // What happens once each, on the watch's thread (or Check's), under no lock.
  struct Reactions {
    std::function<void(const std::string& text)> warn;  // after half the limit
    std::function<void(const std::string& text)> end;   // after `limit`
  };
  // `process` names this one: "rank 3 (node1)". Infinite limit: no thread,
  // never.
  StartWatch(const base::Clock& clock, absl::Duration limit,
             std::string process, Reactions reactions);
  ~StartWatch();
  StartWatch(const StartWatch&) = delete;
  StartWatch& operator=(const StartWatch&) = delete;

  // What this rank does from now on, and what it is that it waits for there, as
  // far as that is known: ("the roll call", "rank 1").
  void Enter(std::string stage, std::string awaited);
  // As before, where all ranks have been seen to come to the start.
  void Enter(std::string stage);

  // What the thread does from time to time.
  void Check();

 private:
  void Loop();

  const base::Clock& clock_;
  const absl::Duration limit_;
  const absl::Duration interval_;  // between two looks
  const std::string process_;
  const std::string short_text_;  // where there is no memory for more
  const Reactions reactions_;
  base::Mutex mutex_;
  base::CondVar stop_changed_;
  bool stop_ ABSL_GUARDED_BY(mutex_) = false;
  bool warned_ ABSL_GUARDED_BY(mutex_) = false;
  bool ended_ ABSL_GUARDED_BY(mutex_) = false;
  int64_t looked_ns_ ABSL_GUARDED_BY(mutex_);
  absl::Duration waited_ ABSL_GUARDED_BY(mutex_);
  std::string stage_ ABSL_GUARDED_BY(mutex_) = "its beginning";
  std::string awaited_ ABSL_GUARDED_BY(mutex_) = "nobody";
  std::thread thread_;
};

}  // namespace hvdlite::internal
