// Backoff: pauses that grow while nothing happens.
#pragma once

#include <algorithm>

#include "absl/time/time.h"

namespace hvdlite::negotiation {

class Backoff {
 public:
  struct Options {
    int yields = 0;        // first looks without a pause, only sched_yield
    absl::Duration first;  // pause
    absl::Duration longest;
  };
  explicit Backoff(const Options& options)
      : options_(options),
        yields_left_(options.yields),
        pause_(options.first) {}

  void Reset() {
    yields_left_ = options_.yields;
    pause_ = options_.first;
  }

  // Zero: yield the processor instead.
  absl::Duration Next() {
    if (yields_left_ > 0) {
      --yields_left_;
      return absl::ZeroDuration();
    }
    const absl::Duration pause = std::min(pause_, options_.longest);
    pause_ = std::min(pause_ * 2, options_.longest);
    return pause;
  }

 private:
  const Options options_;
  int yields_left_;
  absl::Duration pause_;
};

}  // namespace hvdlite::negotiation
