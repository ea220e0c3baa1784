// The checks there are, and how all ranks run them.
#pragma once

#include <string>
#include <vector>

#include "absl/status/statusor.h"
#include "tools/doctor/check.h"

namespace hvdlite::doctor {

const std::vector<Check>& AllChecks();

// Those that flags ask for, in the order of AllChecks(). `names` empty: all.
std::vector<Check> ChosenChecks(const std::vector<std::string>& names,
                                bool skip_slow);

// Collective. The findings of all ranks, merged, on every rank.
absl::StatusOr<std::vector<Finding>> RunChecks(const std::vector<Check>& checks,
                                               Session& session);

}  // namespace hvdlite::doctor
