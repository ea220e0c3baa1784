// Membership: the process sets, and which ranks have joined.
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

// One rank's knowledge of who takes part in what. In the tree, readiness comes
// from sources: the rank itself (bit 0) and its children (bits 1, 2, ...), each
// of which speaks for its whole subtree. Pure: no I/O, threads or clock.
class Membership {
 public:
  // `tree` outlives this.
  Membership(int rank, int world_size, const TreePosition& tree);

  void Add(ProcessSetId id, absl::Span<const int> members);
  void Remove(ProcessSetId id);
  bool exists(ProcessSetId id) const;
  // How many members it has. The set exists.
  int size(ProcessSetId id) const;
  bool IsMember(ProcessSetId id, int rank) const;

  // A rank of this rank's subtree has joined. Returns whether it was the last
  // of a source that some set waited for.
  bool Join(int rank);
  void EndJoin();  // all have
  bool has_joined(int rank) const { return joined_.contains(rank); }
  bool anyone_joined() const { return !joined_.empty(); }
  bool everyone_joined() const;
  // Members of the set that have joined, ascending.
  std::vector<int> JoinedMembers(ProcessSetId id) const;
  // How many members of the set have not, at the root.
  int CountRemaining(ProcessSetId id) const;
  // Of these ranks, the members that have not.
  RankRuns Remaining(ProcessSetId id, const RankRuns& ranks) const;

  // The edges of the tree, seen from this rank, with members behind them,
  // whether they have joined or not: bit 0 is the parent's, bits 1, 2, ... are
  // the children's. 0 for a set that does not exist.
  uint64_t EdgesOf(ProcessSetId id) const;

  // Bits of the sources that have members of the set which have not joined:
  // those that readiness is to come from. 0 for a set that does not exist.
  uint64_t SourcesOf(ProcessSetId id) const;

 private:
  struct Set {
    absl::flat_hash_set<int> members;  // empty for the world: all ranks
    std::vector<int> remaining;  // of each source: members that have not joined
    // Those that have some left; the world's are elsewhere.
    uint64_t sources = 0;
    uint64_t edges = 0;
  };

  int SourceOf(int rank) const;  // -1: not of this rank's subtree
  void UpdateRemaining(ProcessSetId id, Set& set);
  void UpdateSources(ProcessSetId id, Set& set);
  uint64_t ComputeEdges(ProcessSetId id) const;

  const int rank_;
  const int world_size_;
  const TreePosition& tree_;
  absl::flat_hash_map<ProcessSetId, Set> sets_;
  uint64_t world_sources_ = 0;  // looked at for every tensor
  absl::flat_hash_set<int> joined_;
};

// Why an operation of a process set that was removed fails.
std::string DescribeRemoved(ProcessSetId id);

}  // namespace hvdlite::negotiation
