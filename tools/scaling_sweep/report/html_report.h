// The results of a sweep as one page for browsers, offline.
#pragma once

#include <string>

#include "tools/scaling_sweep/report/scaling_table.h"

namespace hvdlite::scaling_sweep {

// Table, curves, and a list of all runs with links to their reports, traces and
// logs, relative to the results' folder; it takes nothing from elsewhere.
std::string HtmlReport(const ScalingTable& table);

}  // namespace hvdlite::scaling_sweep
