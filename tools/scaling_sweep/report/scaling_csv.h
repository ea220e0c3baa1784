// A scaling table for other programs.
#pragma once

#include <string>

#include "tools/scaling_sweep/report/scaling_table.h"

namespace hvdlite::scaling_sweep {

// One line per row, numbers in full precision, shares from 0 to 1; what is not
// known is empty.
std::string ScalingCsv(const ScalingTable& table);

}  // namespace hvdlite::scaling_sweep
