// WakeEvent: how the coordinator sleeps and is woken.
#pragma once

#include <atomic>
#include <memory>

#include "absl/status/statusor.h"
#include "absl/time/time.h"
#include "absl/types/span.h"

namespace hvdlite::negotiation {

// An eventfd that remembers one signal. Signal and Sleep are thread-safe; Drain
// is for whoever has the role.
class WakeEvent {
 public:
  WakeEvent();  // throws std::system_error when there are no descriptors left
  ~WakeEvent();
  WakeEvent(const WakeEvent&) = delete;
  WakeEvent& operator=(const WakeEvent&) = delete;

  void Signal();
  bool signalled() const { return signalled_.load(); }

  // Forgets the signal. What was made known before a Signal() that this
  // swallows is visible to the caller afterwards.
  void Drain();

  // Until there is a signal or one of `descriptors` is readable (true), or for
  // `timeout` (false).
  bool Sleep(absl::Span<const int> descriptors, absl::Duration timeout) const;

 private:
  const int descriptor_;
  std::atomic<bool> signalled_{false};
};

}  // namespace hvdlite::negotiation
