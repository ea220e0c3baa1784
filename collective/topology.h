// Where the ranks of the world run.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/strings/string_view.h"
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
  // size entries; equal only where one kernel runs both ranks
  std::vector<std::string> host_of_rank;
  std::vector<int> cross_rank_of_rank;    // size entries: which host
};

// The topology as rank `rank` sees it. `lowest_rank_of_host[r]` is the lowest
// rank on the host of rank r; it and `host_of_rank` have one entry per rank.
Topology MakeTopology(int rank, absl::Span<const int> lowest_rank_of_host,
                      std::vector<std::string> host_of_rank);

// What MakeTopology takes, where ranks with one name or, as far as MPI can see,
// on one host may be in several containers or machines. The identities, one per
// rank, are those of base::IdentityOfHost().
//
// For each rank the lowest of those that have both its `lowest_rank_of_host`
// and its `identity_of_rank`.
std::vector<int> SplitHosts(absl::Span<const int> lowest_rank_of_host,
                            absl::Span<const uint64_t> identity_of_rank);
// The same names, but for machines that have the name of one with a lower rank:
// "node#2", "node#3", ...
std::vector<std::string> NameMachinesApart(
    std::vector<std::string> host_of_rank,
    absl::Span<const uint64_t> machine_of_rank);

// InvalidArgument when WithVirtualNodes would refuse them in any world of this
// size.
absl::Status CheckVirtualNodes(int world_size, absl::string_view sizes);

// The same ranks in virtual nodes, for tests of several nodes on one machine.
// `sizes` lists how many consecutive ranks each node takes, as in "2,1"; where
// ranks are left, the last size is repeated. An empty text changes nothing; the
// names of the hosts stay. InvalidArgument, alike on all ranks, when it is no
// such list, when the nodes do not add up to the world, or when the ranks of a
// node cannot share memory.
absl::StatusOr<Topology> WithVirtualNodes(const Topology& topology,
                                          absl::string_view sizes);

}  // namespace hvdlite::collective
