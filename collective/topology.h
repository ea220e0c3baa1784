// Where the ranks of the world run: hosts, local ranks, virtual nodes.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/strings/string_view.h"
#include "absl/types/span.h"

namespace hvdlite::collective {

// Ranks of one host can share memory. local_rank counts within the host in rank
// order. cross_rank is the index of the host, with hosts in the order of their
// lowest ranks.
struct Topology {
  int rank = 0;
  int size = 1;
  int local_rank = 0;
  int local_size = 1;
  int cross_rank = 0;
  int cross_size = 1;
  // One entry per rank; equal only if one kernel runs both ranks.
  std::vector<std::string> host_of_rank;
  std::vector<int> cross_rank_of_rank;  // one entry per rank: which host
};

// The topology from the view of rank `rank`. `lowest_rank_of_host[r]` is the
// lowest rank on the host of rank r. It and `host_of_rank` have one entry per
// rank.
Topology MakeTopology(int rank, absl::Span<const int> lowest_rank_of_host,
                      std::vector<std::string> host_of_rank);

// Arguments for MakeTopology() if ranks with one host name, or on one host
// according to MPI, may be in several containers or machines. The identities,
// one per rank, are from base::IdentityOfHost().
//
// For each rank: the lowest rank with the same `lowest_rank_of_host` and the
// same `identity_of_rank`.
std::vector<int> SplitHosts(absl::Span<const int> lowest_rank_of_host,
                            absl::Span<const uint64_t> identity_of_rank);
// The same names, except that further machines with the same name become
// "node#2", "node#3", ..., in rank order.
std::vector<std::string> NameMachinesApart(
    std::vector<std::string> host_of_rank,
    absl::Span<const uint64_t> machine_of_rank);

// InvalidArgument if WithVirtualNodes() would reject `sizes` for every world of
// this size.
absl::Status CheckVirtualNodes(int world_size, absl::string_view sizes);

// Puts the same ranks into virtual nodes, to test several nodes on one machine.
// `sizes` lists how many consecutive ranks each node takes, as in "2,1"; the
// last size is repeated for remaining ranks. An empty text changes nothing.
// Host names stay the same. InvalidArgument, alike on all ranks, if `sizes` is
// not such a list, if the nodes do not add up to the world, or if ranks of a
// node cannot share memory.
absl::StatusOr<Topology> WithVirtualNodes(const Topology& topology,
                                          absl::string_view sizes);

}  // namespace hvdlite::collective
