// A scaling table's cells as text, which its text, CSV and HTML forms share.
#pragma once

#include <string>
#include <vector>

#include "tools/scaling_sweep/report/scaling_table.h"

namespace hvdlite::scaling_sweep {

// One for each column of CellsOf.
std::vector<std::string> ColumnTitles(const ScalingTable& table);

// What is not known is "-"; speed-up and efficiency of an oversubscribed row
// are "oversubscribed".
std::vector<std::string> CellsOf(const ScalingTable& table, const Row& row);

// Below a table: what its columns mean, oversubscribed rows, failures.
std::vector<std::string> Notes(const ScalingTable& table);

}  // namespace hvdlite::scaling_sweep
