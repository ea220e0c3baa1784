#include "base/clock.h"

#include <ctime>

namespace hvdlite::base {

int64_t SteadyClock::NowNanos() const {
  timespec now;
  clock_gettime(CLOCK_MONOTONIC, &now);
  return int64_t{now.tv_sec} * 1'000'000'000 + now.tv_nsec;
}

}  // namespace hvdlite::base
