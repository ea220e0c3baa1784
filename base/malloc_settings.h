// Makes malloc keep freed memory. glibc returns large blocks and the free end
// of the heap to the system. A training step frees and allocates the same
// hundreds of megabytes again, and the kernel must clear each page again.
#pragma once

#include <string>

#include "absl/strings/string_view.h"
#include "base/environment.h"

namespace hvdlite::base {

// Why malloc stays unchanged: `setting` (Config::malloc) is "keep", malloc is
// not glibc's, or an environment variable configures when memory returns to the
// system. Empty: it should be tuned.
std::string WhyMallocIsKept(absl::string_view setting, bool is_glibc,
                            const Environment& environment);

// Whether malloc() is glibc's: no other one is linked or preloaded.
bool MallocIsGlibc();

// Makes glibc's malloc keep all freed memory until the process ends, like
// MALLOC_MMAP_MAX_=0 and MALLOC_TRIM_THRESHOLD_=-1. False if malloc refuses.
bool KeepFreedMemory();

// Calls KeepFreedMemory() unless WhyMallocIsKept() gives a reason. Returns a
// text for the log.
std::string TuneMalloc(absl::string_view setting,
                       const Environment& environment);

}  // namespace hvdlite::base
