// What this process's threads get of the CPUs, and its memory, as counters of a
// trace: so that a thread that waits for a core is told from one that waits for
// a network, and from one that computes.
#pragma once

#include <sys/types.h>

#include <cstdint>
#include <map>
#include <string>
#include <vector>

#include "timeline/record/trace_event.h"

namespace hvdlite::timeline {

// CPU time, and time in which it could have run but had no core, since a
// thread's start: /proc/PID/task/TID/schedstat. Involuntary: switches to
// another thread, from its status.
struct ThreadUse {
  int64_t cpu_ns = 0;
  int64_t delay_ns = 0;
  int64_t involuntary = 0;
};

// Not thread-safe; may be used by any thread.
class ResourceSampler {
 public:
  // `main_thread`: the application's, as gettid() gives it. `folder` is
  // /proc/self but in tests.
  explicit ResourceSampler(pid_t main_thread,
                           std::string folder = "/proc/self");

  // Counters at `now_ns`, each since the sample before, the first since the
  // process's start: PROGRESS_THREAD (of hvdlite), MAIN_THREAD and
  // COMPUTE_THREADS (all threads but hvdlite's, so with the main one), with
  // cpu_us, delay_us, and involuntary for the first two or threads (that had
  // more than a hundredth of their time on a CPU) for the last; MEMORY with
  // rss_bytes, major_faults, minor_faults and system_cpu_us. What the system
  // does not tell is left out.
  std::vector<TraceEvent> Sample(int64_t now_ns);

 private:
  struct Thread {
    bool is_own = false;       // hvdlite's
    bool is_progress = false;  // the one that coordinates
    ThreadUse last;
  };

  const pid_t main_thread_;
  const std::string folder_;
  std::map<pid_t, Thread> threads_;
  int64_t sampled_ns_ = 0;
  int64_t major_faults_ = 0;
  int64_t minor_faults_ = 0;
  int64_t system_cpu_us_ = 0;
};

}  // namespace hvdlite::timeline
