#include "negotiation/engine/role.h"

#include <cstdint>

#include "base/clock.h"

namespace hvdlite::negotiation {

bool Role::AcquireUnless(absl::FunctionRef<bool()> give_up,
                         absl::Duration timeout, absl::Duration spin) {
  const base::SteadyClock clock;
  const int64_t start_ns = clock.NowNanos();
  base::MutexLock lock(&mutex_);
  ++waiters_;
  while (held_ && !give_up()) {
    const absl::Duration waited =
        absl::Nanoseconds(clock.NowNanos() - start_ns);
    if (waited >= timeout) break;
    if (waited < spin) {
      mutex_.Unlock();
      mutex_.Lock();
    } else {
      changed_.WaitFor(&mutex_, timeout - waited);
    }
  }
  --waiters_;
  if (held_ || give_up()) {
    // The background thread steps back for waiters.
    if (waiters_ == 0) changed_.NotifyAll();
    return false;
  }
  held_ = true;
  return true;
}

bool Role::TryAcquire() {
  base::MutexLock lock(&mutex_);
  if (held_) return false;
  held_ = true;
  return true;
}

bool Role::AcquireInBackground() {
  base::MutexLock lock(&mutex_);
  while ((held_ || waiters_ > 0) && !stopped_) changed_.Wait(&mutex_);
  if (stopped_) return false;
  held_ = true;
  return true;
}

void Role::Release() {
  base::MutexLock lock(&mutex_);
  held_ = false;
  changed_.NotifyAll();
}

void Role::Recheck() {
  base::MutexLock lock(&mutex_);
  if (waiters_ > 0) changed_.NotifyAll();
}

bool Role::wanted() const {
  base::MutexLock lock(&mutex_);
  return waiters_ > 0;
}

void Role::StopBackground() {
  base::MutexLock lock(&mutex_);
  stopped_ = true;
  changed_.NotifyAll();
}

}  // namespace hvdlite::negotiation
