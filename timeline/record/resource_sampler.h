// Samples the CPU time of this process's threads, and its memory, as counters
// of a trace. They show whether a thread waits for a core, waits for the
// network, or computes.
#pragma once

#include <sys/types.h>

#include <cstdint>
#include <map>
#include <string>
#include <vector>

#include "timeline/record/trace_event.h"

namespace hvdlite::timeline {

// Since a thread's start: its CPU time, and the delay in which it could run but
// had no core (/proc/PID/task/TID/schedstat). `involuntary` counts its
// involuntary context switches (/proc/PID/task/TID/status).
struct ThreadUse {
  int64_t cpu_ns = 0;
  int64_t delay_ns = 0;
  int64_t involuntary = 0;
};

// Not thread-safe; may be used by any thread.
class ResourceSampler {
 public:
  // `main_thread`: the application's thread, by its gettid(). Tests use another
  // `directory`.
  explicit ResourceSampler(pid_t main_thread,
                           std::string directory = "/proc/self");

  // Returns counters at `now_ns`. Each covers the time since the sample before,
  // the first since the process's start:
  // - PROGRESS_THREAD (hvdlite's background thread) and MAIN_THREAD: cpu_us,
  //   delay_us, involuntary.
  // - COMPUTE_THREADS (all threads except hvdlite's): cpu_us, delay_us, and
  //   threads, which counts those that ran for more than 1 % of the time.
  // - MEMORY: rss_bytes, major_faults, minor_faults, system_cpu_us.
  // Values that the system does not provide are left out.
  std::vector<TraceEvent> Sample(int64_t now_ns);

 private:
  struct Thread {
    bool is_own = false;       // a thread of hvdlite
    bool is_progress = false;  // the background thread
    ThreadUse last;
  };

  const pid_t main_thread_;
  const std::string directory_;
  std::map<pid_t, Thread> threads_;
  int64_t sampled_ns_ = 0;
  int64_t major_faults_ = 0;
  int64_t minor_faults_ = 0;
  int64_t system_cpu_us_ = 0;
};

}  // namespace hvdlite::timeline
