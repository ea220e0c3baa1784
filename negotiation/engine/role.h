// Role: which thread coordinates.
#pragma once

#include "absl/functional/function_ref.h"
#include "absl/time/time.h"
#include "base/mutex.h"

namespace hvdlite::negotiation {

// Held by one thread at a time: by application threads that wait, first, else
// by the background thread. Unlike a mutex it can be waited for until something
// else has happened. Thread-safe.
class Role {
 public:
  // For an application thread. Blocks until the role is free (true: the caller
  // holds it) or `give_up` says so or `timeout` is over (false). `give_up` is
  // looked at again after every Recheck(); it must not touch the role. For
  // `spin` it looks again at once: who has the role often gives it back soon.
  bool AcquireUnless(absl::FunctionRef<bool()> give_up, absl::Duration timeout,
                     absl::Duration spin = absl::ZeroDuration());
  bool TryAcquire();

  // For the background thread: waits until the role is free and no application
  // thread wants it. False: stopped.
  bool AcquireInBackground();

  void Release();

  // Conditions that waiters give up for may have changed.
  void Recheck();

  // An application thread waits for the role.
  bool wanted() const;

  void StopBackground();

 private:
  mutable base::Mutex mutex_;
  base::CondVar changed_;
  bool held_ ABSL_GUARDED_BY(mutex_) = false;
  bool stopped_ ABSL_GUARDED_BY(mutex_) = false;
  int waiters_ ABSL_GUARDED_BY(mutex_) = 0;
};

}  // namespace hvdlite::negotiation
