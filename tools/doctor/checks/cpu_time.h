// Time that a thread gets, beside the time that passes.
#pragma once

#include <time.h>

namespace hvdlite::doctor {

inline double SecondsOf(clockid_t clock) {
  timespec now = {};
  clock_gettime(clock, &now);
  return static_cast<double>(now.tv_sec) +
         1e-9 * static_cast<double>(now.tv_nsec);
}

inline double WallSeconds() { return SecondsOf(CLOCK_MONOTONIC); }

// That the calling thread has run: what other processes take does not count.
inline double ThreadCpuSeconds() { return SecondsOf(CLOCK_THREAD_CPUTIME_ID); }

}  // namespace hvdlite::doctor
