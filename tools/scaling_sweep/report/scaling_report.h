// A scaling table's curves, the table for other programs, and all of it as one
// page for browsers, offline.
#pragma once

#include <string>
#include <utility>
#include <vector>

#include "support/chart.h"
#include "support/html_page.h"
#include "tools/scaling_sweep/report/scaling_table.h"

namespace hvdlite::scaling_sweep {

// Items/s, speed-up and efficiency over N, each with the name of its file
// ("speed_up.svg"), of all groups that have more than one N: with error bars
// (the median's 95 % interval) and a dashed line for the ideal. Where N counts
// cores, items/s are over ranks, and the others of the fastest row of each N.
// Those without such groups are left out.
std::vector<std::pair<std::string, support::Chart>> ScalingCharts(
    const ScalingTable& table);

// One line per row, numbers in full precision, shares from 0 to 1; what is not
// known is empty.
std::string ScalingCsv(const ScalingTable& table);

// Table, curves, settings, machines, and a list of all runs with links to their
// reports, traces and logs, relative to the results' folder; it takes nothing
// from elsewhere.
std::string HtmlReport(const ScalingTable& table);

}  // namespace hvdlite::scaling_sweep
