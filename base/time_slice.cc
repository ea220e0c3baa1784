#include "base/time_slice.h"

#include <linux/sched.h>
#include <linux/sched/types.h>
#include <sys/syscall.h>
#include <unistd.h>

#include <cstdint>

namespace hvdlite::base {

// The C library has no wrappers for these calls (sched_setattr(2)); the header
// <sched.h> would define what <linux/sched.h> does.
bool RequestTimeSlice(absl::Duration slice) {
  sched_attr attributes = {};
  if (syscall(SYS_sched_getattr, 0, &attributes, sizeof attributes, 0) != 0 ||
      attributes.sched_policy != SCHED_NORMAL) {
    return false;
  }
  attributes.sched_runtime =
      static_cast<uint64_t>(absl::ToInt64Nanoseconds(slice));
  if (syscall(SYS_sched_setattr, 0, &attributes, 0) != 0) return false;
  sched_attr now = {};
  return syscall(SYS_sched_getattr, 0, &now, sizeof now, 0) == 0 &&
         now.sched_runtime == attributes.sched_runtime;
}

}  // namespace hvdlite::base
