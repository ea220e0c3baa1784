// Results as a table for people.
#pragma once

#include <ostream>

#include "tools/hvdlite_bench/results.h"

namespace hvdlite::tools {

// Rounds in which the cores were near and far each have lines of their own;
// rounds in between are only counted.
void PrintTable(const Results& results, std::ostream& out);

}  // namespace hvdlite::tools
