#include "negotiation/role.h"

namespace hvdlite::negotiation {

bool Role::AcquireUnless(absl::FunctionRef<bool()> give_up,
                         absl::Duration timeout) {
  base::MutexLock lock(&mutex_);
  ++waiters_;
  bool in_time = true;
  while (held_ && in_time && !give_up()) {
    if (timeout == absl::InfiniteDuration()) {
      changed_.Wait(&mutex_);
    } else {
      in_time = changed_.WaitFor(&mutex_, timeout);
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
