// How long the scheduler lets a thread run at a stretch.
#pragma once

#include "absl/time/time.h"

namespace hvdlite::base {

// Asks for time slices of this length (0.1 ms to 100 ms) for the calling
// thread: one with short slices that wakes up gets a core sooner from threads
// that compute. Needs no privileges. False where the kernel knows nothing of it
// (Linux before 6.12, other policies than the usual one).
bool RequestTimeSlice(absl::Duration slice);

}  // namespace hvdlite::base
