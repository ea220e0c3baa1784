// How rows are distributed over ranks where all get as equal a share as can be.
#pragma once

#include <cstdint>
#include <vector>

namespace hvdlite::collective {

// Rows of each of `ranks` ranks out of `rows`: the first rows % ranks of them
// get one more than the others.
std::vector<int64_t> EvenRows(int64_t rows, int ranks);

}  // namespace hvdlite::collective
