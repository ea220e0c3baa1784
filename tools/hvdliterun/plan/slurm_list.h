// SLURM's compressed lists, as in SLURM_JOB_NODELIST and SLURM_TASKS_PER_NODE.
#pragma once

#include <string>
#include <vector>

#include "absl/status/statusor.h"
#include "absl/strings/string_view.h"

namespace hvdlite::launch {

// "n[01-03,7],login" -> n01 n02 n03 n7 login. Several brackets in a name are
// expanded in order. An error quotes the invalid part.
absl::StatusOr<std::vector<std::string>> ExpandHostList(absl::string_view list);

// "2(x3),1" -> 2 2 2 1.
absl::StatusOr<std::vector<int>> ExpandCounts(absl::string_view list);

}  // namespace hvdlite::launch
