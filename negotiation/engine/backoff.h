// Backoff: pauses that grow while nothing happens.
#pragma once

#include <algorithm>

#include "absl/time/time.h"

namespace hvdlite::negotiation {

class Backoff {
 public:
  struct Options {
    int looks = 0;         // first ones, without any pause
    int yields = 0;        // then, after sched_yield
    absl::Duration first;  // pause
    absl::Duration longest;
  };
  explicit Backoff(const Options& options)
      : options_(options),
        looks_left_(options.looks),
        yields_left_(options.yields),
        pause_(options.first) {}

  void Reset() {
    looks_left_ = options_.looks;
    yields_left_ = options_.yields;
    pause_ = options_.first;
  }

  // Below zero: look again at once. Zero: yield the processor.
  absl::Duration Next() {
    if (looks_left_ > 0) {
      --looks_left_;
      return absl::Nanoseconds(-1);
    }
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
  int looks_left_;
  int yields_left_;
  absl::Duration pause_;
};

}  // namespace hvdlite::negotiation
