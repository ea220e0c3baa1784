// Membership knows the process sets, and which ranks have joined.
#pragma once

#include <cstdint>
#include <memory>
#include <string>
#include <vector>

#include "absl/container/flat_hash_map.h"
#include "absl/container/flat_hash_set.h"
#include "absl/types/span.h"
#include "negotiation/protocol/rank_list.h"
#include "negotiation/protocol/request.h"
#include "negotiation/protocol/tree.h"

namespace hvdlite::negotiation {

// One rank's knowledge of the members of process sets. In the tree, readiness
// comes from sources: the rank itself (bit 0) and its children (bits 1, 2,
// ...). Each child represents its whole subtree. There is no I/O, thread or
// clock.
class Membership {
 public:
  // `tree` must outlive this.
  Membership(int rank, int world_size, const TreePosition& tree);

  void Add(ProcessSetId id, absl::Span<const int> members);
  void Remove(ProcessSetId id);
  bool exists(ProcessSetId id) const;
  // The number of members. The set must exist.
  int size(ProcessSetId id) const;
  bool IsMember(ProcessSetId id, int rank) const;

  // A rank of this rank's subtree has joined. Returns whether it was the last
  // rank of a source that some set waited for.
  bool Join(int rank);
  void EndJoin();  // all have joined
  bool has_joined(int rank) const { return joined_.contains(rank); }
  bool anyone_joined() const { return !joined_.empty(); }
  bool everyone_joined() const;
  // Members of the set that have joined, ascending.
  std::vector<int> JoinedMembers(ProcessSetId id) const;
  // At the root: how many members of the set have not joined.
  int CountRemaining(ProcessSetId id) const;
  // Those of `ranks` that are members and have not joined.
  RankRuns Remaining(ProcessSetId id, const RankRuns& ranks) const;

  // The edges of this rank in the tree that have members behind them, joined or
  // not. Bit 0 is the parent's; bits 1, 2, ... are the children's. The result
  // is 0 for a set that does not exist.
  uint64_t EdgesOf(ProcessSetId id) const;

  // The sources from which readiness has to come, as bits: they have members of
  // the set that have not joined. 0 for a set that does not exist.
  uint64_t SourcesOf(ProcessSetId id) const;

 private:
  struct Set {
    absl::flat_hash_set<int> members;  // empty for the world: all ranks
    std::vector<int> remaining;  // by source: members that have not joined
    // The sources with members left. Those of the world are kept in
    // world_sources_.
    uint64_t sources = 0;
    uint64_t edges = 0;
  };

  int SourceOf(int rank) const;  // -1: not in this rank's subtree
  void UpdateRemaining(ProcessSetId id, Set& set);
  void UpdateSources(ProcessSetId id, Set& set);
  uint64_t ComputeEdges(ProcessSetId id) const;

  const int rank_;
  const int world_size_;
  const TreePosition& tree_;
  absl::flat_hash_map<ProcessSetId, Set> sets_;
  uint64_t world_sources_ = 0;  // read for every tensor
  absl::flat_hash_set<int> joined_;
};

// The error of an operation whose process set was removed.
std::string DescribeRemoved(ProcessSetId id);

}  // namespace hvdlite::negotiation
