// What two SPECs measured differently.
#pragma once

#include <optional>
#include <string>
#include <vector>

#include "tools/scaling_sweep/sweep.pb.h"

namespace hvdlite::scaling_sweep {

// A line for each part that changes what a run of a configuration does:
// program, batch, variables, flags, what counts of the report. Not how many
// runs there are, in which order and of which configurations. Of settings those
// of the same name are compared or, if `setting` is given, that one alone; ""
// is none. The lines are for people: "modified: batch.size: 8 -> 16".
std::vector<std::string> SpecDifferences(
    const Spec& a, const Spec& b, const std::optional<std::string>& setting);

}  // namespace hvdlite::scaling_sweep
