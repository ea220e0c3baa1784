#include "negotiation/engine/time_slice.h"

#include <sched.h>
#include <sys/syscall.h>
#include <unistd.h>

#include <cstdint>

namespace hvdlite::base {
namespace {

// As sched_setattr(2) describes it; the C library has neither this nor the
// calls, and the kernel's header gets into the way of <sched.h>.
struct SchedulingAttributes {
  uint32_t size = sizeof(SchedulingAttributes);
  uint32_t policy = 0;
  uint64_t flags = 0;
  int32_t nice = 0;
  uint32_t priority = 0;
  uint64_t runtime_ns = 0;  // under the usual policy: the slice
  uint64_t deadline_ns = 0;
  uint64_t period_ns = 0;
};

bool Get(SchedulingAttributes* attributes) {
  return syscall(SYS_sched_getattr, 0, attributes, sizeof *attributes, 0) == 0;
}

}  // namespace

bool RequestTimeSlice(absl::Duration slice) {
  SchedulingAttributes attributes;
  if (!Get(&attributes) || attributes.policy != SCHED_OTHER) return false;
  attributes.runtime_ns =
      static_cast<uint64_t>(absl::ToInt64Nanoseconds(slice));
  if (syscall(SYS_sched_setattr, 0, &attributes, 0) != 0) return false;
  SchedulingAttributes now;
  return Get(&now) && now.runtime_ns == attributes.runtime_ns;
}

}  // namespace hvdlite::base
