// What malloc does with memory that is freed. glibc's gives large blocks, and
// what is free at the heap's end, back to the system; a training step frees and
// allocates the same hundreds of megabytes again, and the kernel clears every
// page of them anew.
#pragma once

#include <string>

#include "absl/strings/string_view.h"
#include "base/environment.h"

namespace hvdlite::base {

// Why malloc is left as it is: `setting` (Config::malloc) is "keep", the
// process has another malloc than glibc's, or a variable of the environment has
// chosen when memory goes back to the system. Empty: it is to be tuned.
std::string WhyMallocIsKept(absl::string_view setting, bool is_glibc,
                            const Environment& environment);

// Whether malloc() is that of glibc: no other one is linked or preloaded.
bool MallocIsGlibc();

// Makes glibc's malloc keep all memory that is freed, as MALLOC_MMAP_MAX_=0 and
// MALLOC_TRIM_THRESHOLD_=-1 do: for the whole process, until it ends. False
// where malloc refuses.
bool KeepFreedMemory();

// Does so unless WhyMallocIsKept() has a reason. What was done, for the log.
std::string TuneMalloc(absl::string_view setting,
                       const Environment& environment);

}  // namespace hvdlite::base
