// CPUs and memory policy of a process: set, and read back from the kernel.
#pragma once

#include <sys/types.h>

#include <string>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/strings/string_view.h"
#include "tools/hvdliterun/plan/plan.h"

namespace hvdlite::launch {

// Binds the calling thread, and what it becomes by exec, to `cpus` and `memory`
// (on `nodes`), then asks the kernel what it has: an error tells the difference
// and what to do.
absl::Status BindThisProcess(const std::vector<int>& cpus, MemoryPolicy memory,
                             const std::vector<int>& nodes);

// CPUs of the line "Cpus_allowed_list:" of /proc/PID/status.
absl::StatusOr<std::vector<int>> CpusOfStatus(absl::string_view status);

// The memory policy that this process was started with, such as "interleave";
// empty for the system's default, or where the kernel does not tell.
std::string InheritedMemoryPolicy();

}  // namespace hvdlite::launch
