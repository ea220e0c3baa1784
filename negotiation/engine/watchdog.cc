#include "negotiation/engine/watchdog.h"

#include <algorithm>
#include <utility>

namespace hvdlite::negotiation {

Watchdog::Watchdog(const base::Clock& clock, absl::Duration deadline,
                   std::function<void(const std::string& what)> on_stuck)
    : clock_(clock), deadline_(deadline), on_stuck_(std::move(on_stuck)) {
  if (deadline_ < absl::InfiniteDuration()) {
    thread_ = std::thread([this] { Loop(); });
  }
}

Watchdog::~Watchdog() { End(); }

void Watchdog::End() {
  {
    base::MutexLock lock(&mutex_);
    stop_ = true;
    stop_changed_.NotifyAll();
  }
  if (thread_.joinable()) thread_.join();
}

void Watchdog::Enter(std::string what) {
  base::MutexLock lock(&mutex_);
  inside_ = true;
  what_ = std::move(what);
  last_sign_ns_ = clock_.NowNanos();
}

void Watchdog::Feed() {
  base::MutexLock lock(&mutex_);
  last_sign_ns_ = clock_.NowNanos();
}

void Watchdog::Exit() {
  base::MutexLock lock(&mutex_);
  inside_ = false;
}

void Watchdog::Check() {
  std::string what;
  {
    base::MutexLock lock(&mutex_);
    if (!inside_ || fired_) return;
    if (absl::Nanoseconds(clock_.NowNanos() - last_sign_ns_) < deadline_) {
      return;
    }
    fired_ = true;
    what = what_;
  }
  on_stuck_(what);
}

void Watchdog::Loop() {
  const absl::Duration interval = std::min(deadline_ / 4, absl::Seconds(1));
  for (;;) {
    {
      base::MutexLock lock(&mutex_);
      if (!stop_) stop_changed_.WaitFor(&mutex_, interval);
      if (stop_) return;
    }
    Check();
  }
}

}  // namespace hvdlite::negotiation
