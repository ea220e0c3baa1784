// Ranks as people read them.
#pragma once

#include <string>
#include <vector>

namespace hvdlite::negotiation {

// "rank 3", "ranks 0-2, 5". Sorts; `ranks` is not empty.
std::string FormatRanks(std::vector<int> ranks);

}  // namespace hvdlite::negotiation
