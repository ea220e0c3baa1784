// Monotonic time, replaceable in tests.
#pragma once

#include <atomic>
#include <cstdint>
#include <ctime>

#include "absl/time/time.h"

namespace hvdlite::base {

// Nanoseconds of a monotonic clock. On Linux, processes of one host read the
// same clock; clocks of different hosts are unrelated. Thread-safe.
class Clock {
 public:
  virtual ~Clock() = default;
  virtual int64_t NowNanos() const = 0;
};

// CLOCK_MONOTONIC.
class SteadyClock final : public Clock {
 public:
  int64_t NowNanos() const override {
    timespec now;
    clock_gettime(CLOCK_MONOTONIC, &now);
    return int64_t{now.tv_sec} * 1'000'000'000 + now.tv_nsec;
  }
};

// CPU time of the calling thread.
inline int64_t ThreadCpuNanos() {
  timespec used;
  clock_gettime(CLOCK_THREAD_CPUTIME_ID, &used);
  return int64_t{used.tv_sec} * 1'000'000'000 + used.tv_nsec;
}

// Converts a time limit of the configuration; 0 means never.
inline absl::Duration SecondsOrNever(double seconds) {
  return seconds == 0 ? absl::InfiniteDuration() : absl::Seconds(seconds);
}

// A clock for tests that moves only when a test moves it. Thread-safe.
class FakeClock final : public Clock {
 public:
  int64_t NowNanos() const override { return now_ns_.load(); }
  void Advance(absl::Duration by) {
    now_ns_.fetch_add(absl::ToInt64Nanoseconds(by));
  }

 private:
  std::atomic<int64_t> now_ns_{1'000'000'000};
};

}  // namespace hvdlite::base
