// The memory policy of a thread: which NUMA nodes its new pages come from.
#pragma once

#include <string>
#include <vector>

#include "absl/status/statusor.h"

namespace hvdlite::base {

// As get_mempolicy(2) tells it.
struct NumaPolicy {
  int mode = 0;  // MPOL_*, without flags
  std::vector<int> nodes = {};
};

// Of the calling thread. Unavailable where the kernel has none or a container
// forbids the question.
absl::StatusOr<NumaPolicy> ThisThreadsNumaPolicy();

// "default", "local", "preferred", "bind", "interleave" or "number 9". Kernels
// before 5.14 store `local` as MPOL_PREFERRED without nodes.
std::string NumaPolicyName(const NumaPolicy& policy);

}  // namespace hvdlite::base
