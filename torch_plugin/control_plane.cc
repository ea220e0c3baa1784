#include "torch_plugin/control_plane.h"

#include <utility>

#include "absl/strings/str_cat.h"
#include "base/status_macros.h"
#include "collective/agreement.h"
#include "negotiation/in_process/in_process_channel.h"
#include "negotiation/mpi/mpi_channel.h"
#include "negotiation/routed_channel.h"
#include "negotiation/shm/shm_channel.h"
#include "negotiation/tree.h"
#include "negotiation/ucx/ucx_channel.h"
#include "negotiation/world_layout.h"

namespace hvdlite::internal {
namespace {

using collective::Topology;
using negotiation::ControlChannel;
using Channel = absl::StatusOr<std::unique_ptr<ControlChannel>>;

std::vector<int> TreeNeighbours(const Config& config,
                                const Topology& topology) {
  const negotiation::TreePosition place = negotiation::PlaceInTree(
      topology.rank, static_cast<int>(config.tree_arity),
      negotiation::WorldLayout(topology.cross_rank_of_rank));
  std::vector<int> neighbours;
  if (place.parent >= 0) neighbours.push_back(place.parent);
  for (const auto& child : place.children) neighbours.push_back(child.rank);
  return neighbours;
}

// UCX among the tree's neighbours, or only those of them on other nodes.
Channel CreateUcx(const Config& config, const Topology& topology,
                  collective::Communicator& flat, bool other_nodes_only) {
  negotiation::UcxChannelOptions options;
  options.host_of_rank = topology.host_of_rank;
  const auto node_of = [&](int rank) {
    return topology.cross_rank_of_rank[static_cast<size_t>(rank)];
  };
  for (const int neighbour : TreeNeighbours(config, topology)) {
    if (!other_nodes_only || node_of(neighbour) != topology.cross_rank) {
      options.neighbours.push_back(neighbour);
    }
  }
  return negotiation::CreateUcxChannel(flat, options);
}

// Among the ranks of this node; null where a rank is alone. All ranks of all
// nodes get theirs, or the same error.
Channel CreateForNode(const Topology& topology,
                      collective::Communicator& flat) {
  std::vector<int> members;
  negotiation::ShmChannelOptions options;
  for (int rank = 0; rank < topology.size; ++rank) {
    const size_t index = static_cast<size_t>(rank);
    if (topology.cross_rank_of_rank[index] != topology.cross_rank) continue;
    members.push_back(rank);
    options.rank_names.push_back(
        absl::StrCat("rank ", rank, " (", topology.host_of_rank[index], ")"));
  }
  const auto create = [&]() -> Channel {
    if (members.size() == 1) return nullptr;
    // Groups that are made at the same time have different tags.
    HVDLITE_ASSIGN_OR_RETURN(
        const std::unique_ptr<collective::Communicator> node,
        flat.CreateSubgroup(members, topology.cross_rank));
    return negotiation::CreateShmChannel(*node, options);
  };
  Channel channel = create();
  HVDLITE_RETURN_IF_ERROR(collective::AgreeOn(flat, channel.status()));
  return channel;
}

}  // namespace

Channel ChooseControlChannel(const Config& config, const Topology& topology,
                             collective::Communicator& flat,
                             std::vector<std::string>& warnings) {
  if (topology.size == 1) {
    HVDLITE_ASSIGN_OR_RETURN(auto channels,
                             negotiation::CreateInProcessChannels(1));
    return std::move(channels.front());
  }
  if (config.control_channel == "mpi") return negotiation::CreateMpiChannel();
  if (config.control_channel == "ucx") {
    return CreateUcx(config, topology, flat, /*other_nodes_only=*/false);
  }
  Channel node = CreateForNode(topology, flat);
  if (!node.ok()) {
    warnings.push_back(absl::StrCat(
        "ranks of a node cannot share memory, so that control messages go "
        "through MPI, which has to be polled: ",
        node.status().message()));
    return negotiation::CreateMpiChannel();
  }
  std::unique_ptr<ControlChannel> world;
  if (topology.cross_size > 1) {
    Channel ucx = CreateUcx(config, topology, flat, /*other_nodes_only=*/true);
    if (ucx.ok()) {
      world = *std::move(ucx);
    } else {
      warnings.push_back(absl::StrCat(
          "control messages between nodes go through MPI, which has to be "
          "polled, since UCX cannot be used: ",
          ucx.status().message()));
      HVDLITE_ASSIGN_OR_RETURN(world, negotiation::CreateMpiChannel());
    }
  }
  return negotiation::CreateRoutedChannel(topology.rank,
                                          topology.cross_rank_of_rank,
                                          *std::move(node), std::move(world));
}

}  // namespace hvdlite::internal
