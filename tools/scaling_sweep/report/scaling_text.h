// A scaling table as text, which its text and HTML forms share.
#pragma once

#include <cstddef>
#include <string>
#include <vector>

#include "support/html_page.h"
#include "tools/scaling_sweep/report/scaling_table.h"

namespace hvdlite::scaling_sweep {

// Returns the name of a row's series: setting, mapping, threads.
std::string SeriesName(const ScalingTable& table, const Row& row);

struct TextCells {
  std::vector<std::string> titles;
  std::vector<std::vector<std::string>> rows;  // as those of the table
  size_t keys = 0;  // number of first columns that identify a row
};

// Returns the cells. Leaves out columns in which all rows are equal or empty:
// settings, mappings, nodes, cores, shares, failures. Unknown values are "-".
// The efficiency of a reference has a star; that of an oversubscribed row is
// "oversubscribed".
TextCells CellsOf(const ScalingTable& table);

// Returns the machines of the runs with their known properties.
std::vector<support::Properties> MachinesOf(const ScalingTable& table);

// Returns the notes below a table: the meaning of the columns, oversubscribed
// rows, failures.
std::vector<std::string> Notes(const ScalingTable& table);

// Returns the table and its notes, wrapped.
std::string TableText(const ScalingTable& table);

}  // namespace hvdlite::scaling_sweep
