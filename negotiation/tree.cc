#include "negotiation/tree.h"

#include <algorithm>

#include "absl/container/btree_map.h"

namespace hvdlite::negotiation {
namespace {

// Parents of all ranks; -1 for rank 0.
std::vector<int> Parents(int arity, absl::Span<const int> host_of_rank) {
  absl::btree_map<int, std::vector<int>> ranks_of_host;
  std::vector<int> leaders;
  std::vector<int> parents(host_of_rank.size(), -1);
  for (int rank = 0; rank < static_cast<int>(host_of_rank.size()); ++rank) {
    std::vector<int>& local = ranks_of_host[host_of_rank[rank]];
    std::vector<int>& siblings = local.empty() ? leaders : local;
    if (!siblings.empty()) {
      parents[rank] = siblings[(siblings.size() - 1) / arity];
    }
    if (local.empty()) leaders.push_back(rank);
    local.push_back(rank);
  }
  return parents;
}

}  // namespace

TreePosition PlaceInTree(int rank, int arity,
                         absl::Span<const int> host_of_rank) {
  const std::vector<int> parents = Parents(arity, host_of_rank);
  TreePosition position;
  position.parent = parents[rank];
  for (int other = 0; other < static_cast<int>(parents.size()); ++other) {
    // The child of `rank` on the way from `other` to the root, if there is one.
    int child = other;
    int distance = 1;
    while (child >= 0 && parents[child] != rank) {
      child = parents[child];
      ++distance;
    }
    if (child < 0) continue;
    position.height = std::max(position.height, distance);
    if (child == other) position.children.push_back({child, {}});
    for (TreePosition::Child& known : position.children) {
      if (known.rank == child) known.subtree.push_back(other);
    }
  }
  return position;
}

}  // namespace hvdlite::negotiation
