// Writes a scaling table as curves, as CSV for other programs, and as one
// HTML page that works offline.
#pragma once

#include <string>
#include <utility>
#include <vector>

#include "support/chart.h"
#include "support/html_page.h"
#include "tools/scaling_sweep/report/scaling_table.h"

namespace hvdlite::scaling_sweep {

// Returns charts of items/s, speed-up and efficiency over N, each with its file
// name ("speed_up.svg"). They show all series with more than one N, with error
// bars (the median's 95 % interval) and a dashed line for the ideal. If N
// counts cores, items/s are drawn over ranks, and the other charts show the
// fastest row of each N. Charts without any series are left out.
std::vector<std::pair<std::string, support::Chart>> ScalingCharts(
    const ScalingTable& table);

// Returns one line per row. Numbers have full precision, shares are from 0 to
// 1, and unknown values are empty.
std::string ScalingCsv(const ScalingTable& table);

// Returns a page with the table, curves, settings, machines, and a list of all
// runs with links to their reports, traces and logs, relative to the directory
// of the results. The page needs no other files.
std::string HtmlReport(const ScalingTable& table);

}  // namespace hvdlite::scaling_sweep
