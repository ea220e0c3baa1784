// PollPause: how a thread waits for what it has to ask for.
#pragma once

#include <sched.h>

#include "absl/time/clock.h"
#include "absl/time/time.h"

namespace hvdlite::collective {

// Looks again at once for a while, in which others may have the core, then
// after short sleeps.
class PollPause {
 public:
  // `spin`: how long it looks again at once, since the last Reset.
  explicit PollPause(absl::Duration spin) : spin_(spin) {}

  // Something has happened.
  void Reset() { since_ = absl::InfiniteFuture(); }

  // Nothing has. True: it has slept.
  bool Pause() {
    const absl::Time now = absl::Now();
    if (since_ == absl::InfiniteFuture()) since_ = now;
    if (now - since_ < spin_) {
      sched_yield();
      return false;
    }
    absl::SleepFor(kSleep);
    return true;
  }

 private:
  // A gigabit link carries 2.5 KB meanwhile.
  static constexpr absl::Duration kSleep = absl::Microseconds(20);

  const absl::Duration spin_;
  absl::Time since_ = absl::InfiniteFuture();
};

}  // namespace hvdlite::collective
