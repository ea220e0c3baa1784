#include "collective/topology.h"

#include <map>
#include <utility>

namespace hvdlite::collective {

Topology MakeTopology(int rank, absl::Span<const int> lowest_rank_of_host,
                      std::vector<std::string> host_of_rank) {
  Topology topology;
  topology.rank = rank;
  topology.size = static_cast<int>(lowest_rank_of_host.size());
  topology.local_size = 0;
  topology.host_of_rank = std::move(host_of_rank);
  topology.cross_rank_of_rank.resize(lowest_rank_of_host.size());

  std::map<int, int> cross_rank_of_lowest;  // ordered by lowest rank
  for (const int lowest : lowest_rank_of_host) cross_rank_of_lowest[lowest];
  topology.cross_size = static_cast<int>(cross_rank_of_lowest.size());
  int next = 0;
  for (auto& [lowest, cross_rank] : cross_rank_of_lowest) cross_rank = next++;

  for (int other = 0; other < topology.size; ++other) {
    topology.cross_rank_of_rank[other] =
        cross_rank_of_lowest[lowest_rank_of_host[other]];
    if (lowest_rank_of_host[other] == lowest_rank_of_host[rank]) {
      if (other < rank) ++topology.local_rank;
      ++topology.local_size;
    }
  }
  topology.cross_rank = topology.cross_rank_of_rank[rank];
  return topology;
}

}  // namespace hvdlite::collective
