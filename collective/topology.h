// Where the ranks of the world run.
#pragma once

#include <string>
#include <vector>

namespace hvdlite::collective {

// Ranks of one host are those that can share memory. local_rank counts within
// the host in rank order; cross_rank is the index of the host among hosts in
// the order of their lowest ranks.
struct Topology {
  int rank = 0;
  int size = 1;
  int local_rank = 0;
  int local_size = 1;
  int cross_rank = 0;
  int cross_size = 1;
  std::vector<std::string> host_of_rank;  // size entries
  std::vector<int> cross_rank_of_rank;    // size entries: which host
};

}  // namespace hvdlite::collective
