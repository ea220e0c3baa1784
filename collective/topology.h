// Where the ranks of the world run.
#pragma once

#include <string>
#include <vector>

#include "absl/types/span.h"

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

// The topology as rank `rank` sees it. `lowest_rank_of_host[r]` is the lowest
// rank on the host of rank r; it and `host_of_rank` have one entry per rank.
Topology MakeTopology(int rank, absl::Span<const int> lowest_rank_of_host,
                      std::vector<std::string> host_of_rank);

}  // namespace hvdlite::collective
