// WorldLayout: which ranks run on which host.
#pragma once

#include <string>
#include <vector>

#include "absl/types/span.h"

namespace hvdlite::negotiation {

// The same on every rank, and never changed: a process that plays many ranks
// has one for all of them.
class WorldLayout {
 public:
  // One entry per rank: the index of its host, counted from 0 without gaps, and
  // the host's name. Without names, hosts have empty ones.
  explicit WorldLayout(std::vector<int> host_of_rank,
                       std::vector<std::string> host_names = {});

  int world_size() const { return static_cast<int>(host_of_rank_.size()); }
  // Per rank.
  const std::vector<std::string>& host_names() const { return host_names_; }

  // Ranks on the host of `rank`, ascending.
  absl::Span<const int> RanksOnHostOf(int rank) const;
  // Where `rank` is among them.
  int local_rank(int rank) const { return local_rank_[rank]; }

  // The lowest rank of each host, ascending.
  absl::Span<const int> leaders() const { return leaders_; }
  // Where the leader of the host of `rank` is among them.
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

}  // namespace hvdlite::negotiation
