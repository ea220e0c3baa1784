// The tree that readiness travels up and decisions come down.
#pragma once

#include <vector>

#include "negotiation/protocol/rank_list.h"
#include "negotiation/protocol/world_layout.h"

namespace hvdlite::negotiation {

// A rank and its children, those on its own host and those that lead other
// hosts, have to fit into the bits of one word (TensorSlot::arrived).
inline constexpr int kMaxTreeArity = 31;

// One rank's place in the tree. Rank 0 is the root.
struct TreePosition {
  int parent = -1;  // -1 for the root
  int height = 0;   // of the subtree below this rank; 0 for a leaf
  // Direct children, each with the ranks of its subtree, of which it is the
  // lowest.
  struct Child {
    int rank = 0;
    RankRuns subtree;
  };
  std::vector<Child> children;
};

// A rank reports to another of its own host where it can: the ranks of a host
// form a tree below the lowest of them, and those of all hosts form a tree
// below rank 0. At most 2 * `arity` children each, `arity` from 1 to
// kMaxTreeArity. Takes time by the size of the rank's subtree.
TreePosition PlaceInTree(int rank, int arity, const WorldLayout& layout);

}  // namespace hvdlite::negotiation
