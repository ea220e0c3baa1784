#include "negotiation/engine/wake_event.h"

#include <poll.h>
#include <sys/eventfd.h>
#include <unistd.h>

#include <cerrno>
#include <cstdint>
#include <system_error>

#include "absl/container/inlined_vector.h"

namespace hvdlite::negotiation {

WakeEvent::WakeEvent() : descriptor_(eventfd(0, EFD_NONBLOCK | EFD_CLOEXEC)) {
  if (descriptor_ < 0) {
    throw std::system_error(errno, std::generic_category(), "eventfd");
  }
}

WakeEvent::~WakeEvent() { close(descriptor_); }

void WakeEvent::Signal() {
  if (signalled_.exchange(true)) return;
  const uint64_t one = 1;
  // Cannot fail: the counter never comes near its limit.
  [[maybe_unused]] const ssize_t written = write(descriptor_, &one, sizeof one);
}

void WakeEvent::Drain() {
  if (!signalled_.load()) return;
  // The descriptor first: a signal that comes in between finds `signalled_` set
  // and writes nothing, and what it announces is visible after the exchange. If
  // there is nothing to read, the signaller is just about to write; forgetting
  // its signal now would leave the descriptor readable for ever.
  uint64_t count;
  if (read(descriptor_, &count, sizeof count) != sizeof count) return;
  signalled_.exchange(false);
}

bool WakeEvent::Sleep(absl::Span<const int> descriptors,
                      absl::Duration timeout) const {
  absl::InlinedVector<pollfd, 8> watched;
  watched.push_back({descriptor_, POLLIN, 0});
  for (const int descriptor : descriptors) {
    watched.push_back({descriptor, POLLIN, 0});
  }
  const timespec pause = absl::ToTimespec(timeout);
  return ppoll(watched.data(), watched.size(),
               timeout == absl::InfiniteDuration() ? nullptr : &pause,
               nullptr) != 0;
}

}  // namespace hvdlite::negotiation
