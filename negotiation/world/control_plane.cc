#include "negotiation/world/control_plane.h"

#include <numeric>
#include <utility>

#include "absl/strings/str_cat.h"
#include "base/status_macros.h"
#include "collective/communicator.h"
#include "negotiation/channel/control_channel.h"
#include "negotiation/channel/shm/shm_channel.h"
#include "negotiation/channel/ucx/ucx_channel.h"
#include "negotiation/protocol/tree.h"

namespace hvdlite::internal {
namespace {

using collective::Topology;
using negotiation::ControlChannel;
using Channel = absl::StatusOr<std::unique_ptr<ControlChannel>>;

using Layout = std::shared_ptr<const negotiation::WorldLayout>;

// UCX between neighbours in the tree that are on different nodes; null on ranks
// that have none.
Channel CreateUcx(const Config& config, const Topology& topology,
                  const negotiation::WorldLayout& layout,
                  collective::Communicator& flat) {
  negotiation::UcxChannelOptions options;
  options.host_of_rank = topology.host_of_rank;
  const int node = layout.leader_index(topology.rank);
  const negotiation::TreePosition place = negotiation::PlaceInTree(
      topology.rank, static_cast<int>(config.tree_arity), layout);
  const auto add = [&](int rank) {
    if (layout.leader_index(rank) != node) options.neighbours.push_back(rank);
  };
  if (place.parent >= 0) add(place.parent);
  for (const auto& child : place.children) add(child.rank);
  return negotiation::CreateUcxChannel(flat, options);
}

// Between the leaders of nodes; null on other ranks.
Channel CreateBetweenNodes(const Config& config, const Topology& topology,
                           const negotiation::WorldLayout& layout,
                           collective::Communicator& flat,
                           std::vector<std::string>& warnings) {
  if (config.control_channel != "mpi") {
    Channel ucx = CreateUcx(config, topology, layout, flat);
    if (ucx.ok() || config.control_channel == "ucx") return ucx;
    warnings.push_back(absl::StrCat(
        "control messages between nodes go through MPI, which has to be "
        "polled, since UCX cannot be used: ",
        ucx.status().message()));
  }
  return negotiation::CreateMpiChannel(layout.leaders());
}

// Among the ranks of this node; null where a rank is alone. All ranks of all
// nodes get theirs, or the same error.
Channel CreateForNode(const Topology& topology,
                      const negotiation::WorldLayout& layout,
                      collective::Communicator& flat) {
  const absl::Span<const int> members = layout.RanksOnHostOf(topology.rank);
  negotiation::ShmChannelOptions options;
  for (const int rank : members) {
    options.rank_names.push_back(
        collective::DescribeRank(rank, topology.host_of_rank));
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
  Layout layout = std::make_shared<negotiation::WorldLayout>(
      topology.cross_rank_of_rank, topology.host_of_rank);
  Channel node = CreateForNode(topology, *layout, flat);
  if (!node.ok()) {
    warnings.push_back(
        absl::StrCat("ranks of a node cannot share memory, so that control "
                     "messages travel as if each were a node of its own: ",
                     node.status().message()));
    node = nullptr;
    std::vector<int> nodes(static_cast<size_t>(topology.size));
    std::iota(nodes.begin(), nodes.end(), 0);
    layout = std::make_shared<negotiation::WorldLayout>(std::move(nodes),
                                                        topology.host_of_rank);
  }
  std::unique_ptr<ControlChannel> world;
  if (layout->leaders().size() > 1) {
    HVDLITE_ASSIGN_OR_RETURN(
        world, CreateBetweenNodes(config, topology, *layout, flat, warnings));
  }
  return negotiation::CreateRoutedChannel(topology.rank, std::move(layout),
                                          *std::move(node), std::move(world));
}

}  // namespace hvdlite::internal
