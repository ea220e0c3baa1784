// A table of scaling in words, which its text and HTML forms share.
#pragma once

#include <cstddef>
#include <string>
#include <vector>

#include "support/html_page.h"
#include "tools/scaling_sweep/report/scaling_table.h"

namespace hvdlite::scaling_sweep {

// The name of what a group shares: setting, mapping, threads.
std::string SeriesName(const ScalingTable& table, const Row& row);

struct TextCells {
  std::vector<std::string> titles;
  std::vector<std::vector<std::string>> rows;  // as those of the table
  size_t keys = 0;  // the first columns, which tell what a row is
};

// Without columns in which all rows would say the same, or nothing: settings,
// mappings, nodes, cores, shares, failures. What is not known is "-"; a
// reference's efficiency has a star, an oversubscribed row's is
// "oversubscribed".
TextCells CellsOf(const ScalingTable& table);

// The machines of the runs, each with what is known of it.
std::vector<support::Properties> MachinesOf(const ScalingTable& table);

// Below a table: what its columns mean, oversubscribed rows, failures.
std::vector<std::string> Notes(const ScalingTable& table);

// The table and its notes, wrapped.
std::string TableText(const ScalingTable& table);

}  // namespace hvdlite::scaling_sweep
