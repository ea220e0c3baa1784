#include "collective/topology.h"

#include <algorithm>
#include <map>
#include <utility>

#include "absl/status/status.h"
#include "absl/strings/str_cat.h"
#include "base/config/config_loader.h"
#include "base/status_macros.h"

namespace hvdlite::collective {
namespace {

// For each rank, the lowest rank of its virtual node.
absl::StatusOr<std::vector<int>> LowestRankOfNode(int world_size,
                                                  absl::string_view sizes) {
  std::vector<int> lowest_rank;
  const auto add_node = [&](int node_size) {
    lowest_rank.insert(lowest_rank.end(), static_cast<size_t>(node_size),
                       static_cast<int>(lowest_rank.size()));
  };
  const auto ranks_left = [&] {
    return world_size - static_cast<int>(lowest_rank.size());
  };
  HVDLITE_ASSIGN_OR_RETURN(const std::vector<int> node_sizes,
                           ParseVirtualNodes(sizes));
  for (const int node_size : node_sizes) {
    if (node_size > ranks_left()) {
      return absl::InvalidArgumentError(
          absl::StrCat("virtual nodes '", sizes,
                       "' need more ranks than the world has, ", world_size));
    }
    add_node(node_size);
  }
  const int last = node_sizes.back();
  if (ranks_left() % last != 0) {
    return absl::InvalidArgumentError(
        absl::StrCat("virtual nodes '", sizes, "': ", ranks_left(), " of the ",
                     world_size, " ranks remain, not a multiple of ", last));
  }
  while (ranks_left() > 0) add_node(last);
  return lowest_rank;
}

}  // namespace

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

std::vector<int> SplitHosts(absl::Span<const int> lowest_rank_of_host,
                            absl::Span<const uint64_t> identity_of_rank) {
  std::map<std::pair<int, uint64_t>, int> lowest_of;
  std::vector<int> lowest;
  for (size_t rank = 0; rank < lowest_rank_of_host.size(); ++rank) {
    const std::pair host(lowest_rank_of_host[rank], identity_of_rank[rank]);
    lowest.push_back(
        lowest_of.try_emplace(host, static_cast<int>(rank)).first->second);
  }
  return lowest;
}

std::vector<std::string> NameMachinesApart(
    std::vector<std::string> host_of_rank,
    absl::Span<const uint64_t> machine_of_rank) {
  // Machines of each name, in the order of their lowest ranks.
  std::map<std::string, std::vector<uint64_t>> machines_of_name;
  for (size_t rank = 0; rank < host_of_rank.size(); ++rank) {
    std::vector<uint64_t>& machines = machines_of_name[host_of_rank[rank]];
    const auto machine =
        std::find(machines.begin(), machines.end(), machine_of_rank[rank]);
    const auto number = machine - machines.begin() + 1;
    if (machine == machines.end()) machines.push_back(machine_of_rank[rank]);
    if (number > 1) absl::StrAppend(&host_of_rank[rank], "#", number);
  }
  return host_of_rank;
}

absl::Status CheckVirtualNodes(int world_size, absl::string_view sizes) {
  if (sizes.empty()) return absl::OkStatus();
  return LowestRankOfNode(world_size, sizes).status();
}

absl::StatusOr<Topology> WithVirtualNodes(const Topology& topology,
                                          absl::string_view sizes) {
  if (sizes.empty()) return topology;
  HVDLITE_ASSIGN_OR_RETURN(const std::vector<int> lowest_rank,
                           LowestRankOfNode(topology.size, sizes));
  for (int rank = 0; rank < topology.size; ++rank) {
    const int lowest = lowest_rank[rank];
    if (topology.cross_rank_of_rank[rank] !=
        topology.cross_rank_of_rank[lowest]) {
      return absl::InvalidArgumentError(
          absl::StrCat("virtual nodes '", sizes, "' put rank ", lowest, " (",
                       topology.host_of_rank[lowest], ") and rank ", rank, " (",
                       topology.host_of_rank[rank],
                       ") into one node, but they cannot share memory"));
    }
  }
  return MakeTopology(topology.rank, lowest_rank, topology.host_of_rank);
}

}  // namespace hvdlite::collective
