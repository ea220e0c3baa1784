// The tree that readiness travels up and decisions come down, and WorldLayout:
// which ranks run on which host.
#pragma once

#include <string>
#include <vector>

#include "absl/types/span.h"
#include "base/config/option_table.h"
#include "negotiation/protocol/rank_list.h"

namespace hvdlite::negotiation {

// The layout is the same on every rank and never changes. A process that
// simulates many ranks has one for all of them.
class WorldLayout {
 public:
  // One entry per rank: the index of its host, counted from 0 without gaps, and
  // the host's name. Without names, hosts have empty ones.
  explicit WorldLayout(std::vector<int> host_of_rank,
                       std::vector<std::string> host_names = {});

  int world_size() const { return static_cast<int>(host_of_rank_.size()); }
  // Host names, one per rank.
  const std::vector<std::string>& host_names() const { return host_names_; }
  // For example "rank 3 (host)".
  std::string NameOf(int rank) const;

  // Ranks on the host of `rank`, ascending.
  absl::Span<const int> RanksOnHostOf(int rank) const;
  // The index of `rank` among them.
  int local_rank(int rank) const { return local_rank_[rank]; }

  // The lowest rank of each host, ascending.
  absl::Span<const int> leaders() const { return leaders_; }
  // The index of the leader of `rank`'s host among them.
  int leader_index(int rank) const {
    return leader_index_[host_of_rank_[rank]];
  }

 private:
  const std::vector<int> host_of_rank_;
  std::vector<std::string> host_names_;
  std::vector<std::vector<int>> ranks_of_host_;
  std::vector<int> local_rank_;    // per rank
  std::vector<int> leaders_;       // per host, in the order of the ranks
  std::vector<int> leader_index_;  // per host
};

// The bits of one word (TensorSlot::arrived) hold a rank and its children:
// those on its own host, and those that lead other hosts.
static_assert(1 + 2 * kMaxTreeArity <= 64);

// One rank's place in the tree. Rank 0 is the root.
struct TreePosition {
  int parent = -1;  // -1 for the root
  int height = 0;   // of the subtree below this rank; 0 for a leaf
  // Direct children. Each is the lowest rank of its subtree; `ranks` lists the
  // subtree.
  struct Child {
    int rank = 0;
    RankRuns subtree;
  };
  std::vector<Child> children;
};

// A rank reports to a rank of its own host if possible. The ranks of a host
// form a tree below the lowest of them. The leaders of all hosts form a tree
// below rank 0. A rank has at most 2 * `arity` children; `arity` is 1 to
// kMaxTreeArity. The time is proportional to the rank's subtree.
TreePosition PlaceInTree(int rank, int arity, const WorldLayout& layout);

}  // namespace hvdlite::negotiation
