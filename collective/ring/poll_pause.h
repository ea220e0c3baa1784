// PollPause: how a thread waits for what it has to ask for.
#pragma once

#include <sched.h>

#include <algorithm>
#include <chrono>

#include "absl/time/clock.h"
#include "absl/time/time.h"

namespace hvdlite::collective {

// Looks again at once for a while, in which others may have the core, then
// after short sleeps, which become longer where nothing happens for long.
class PollPause {
 public:
  // `spin`: how long it looks again at once, since the last Reset.
  explicit PollPause(absl::Duration spin) : spin_(spin) {}

  // Something has happened.
  void Reset() {
    looks_ = 0;
    sleeps_ = 0;
    sleep_ = kShortSleep;
  }

  // Nothing has. True: it has slept.
  bool Pause() {
    const auto now = std::chrono::steady_clock::now();
    if (looks_ == 0) since_ = now;
    if (looks_ < kLooks) ++looks_;
    if (looks_ < kLooks || absl::FromChrono(now - since_) < spin_) {
      sched_yield();
      return false;
    }
    if (sleep_ < kLongestSleep && ++sleeps_ > kShortSleeps) {
      sleep_ = std::min(2 * sleep_, kLongestSleep);
    }
    absl::SleepFor(sleep_);
    return true;
  }

 private:
  static constexpr int kLooks = 50;  // at least, at once
  // A gigabit link carries 2.5 KB meanwhile.
  static constexpr absl::Duration kShortSleep = absl::Microseconds(20);
  static constexpr int kShortSleeps = 100;
  static constexpr absl::Duration kLongestSleep = absl::Milliseconds(1);

  const absl::Duration spin_;
  int looks_ = 0;
  int sleeps_ = 0;  // short ones
  absl::Duration sleep_ = kShortSleep;
  std::chrono::steady_clock::time_point since_;
};

}  // namespace hvdlite::collective
