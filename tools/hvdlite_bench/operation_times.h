// How long operations of all ranks took.
#pragma once

#include <vector>

#include "tools/hvdlite_bench/results.h"

namespace hvdlite::tools {

// Durations of operations, in the unit of the times: `start` and `end` hold
// each rank's times, `ranks` lists of equal length one after the other. With
// `one_clock` from the latest start to the latest end, else the longest that a
// rank measured.
std::vector<double> OperationTimes(const std::vector<double>& start,
                                   const std::vector<double>& end, int ranks,
                                   bool one_clock);

// The same rounds, each sample the 99th percentile of its operations
// (Sample::raw); without the single operations.
Case Percentile99(const Case& median);

}  // namespace hvdlite::tools
