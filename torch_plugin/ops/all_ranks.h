// The ranks 0 .. size-1 as a list that lives as long as the process.
#pragma once

#include <vector>

namespace hvdlite::internal {

const std::vector<int>& AllRanks(int size);

}  // namespace hvdlite::internal
