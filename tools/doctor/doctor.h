// The list of all checks, and a function that runs them on all ranks.
#pragma once

#include <string>
#include <vector>

#include "absl/status/statusor.h"
#include "tools/doctor/check.h"

namespace hvdlite::doctor {

const std::vector<Check>& AllChecks();

// The checks that the flags select, in the order of AllChecks(). If `names` is
// empty, all are selected.
std::vector<Check> ChosenChecks(const std::vector<std::string>& names,
                                bool skip_slow);

// Collective. Every rank gets the merged findings of all ranks.
absl::StatusOr<std::vector<Finding>> RunChecks(const std::vector<Check>& checks,
                                               Session& session);

}  // namespace hvdlite::doctor
