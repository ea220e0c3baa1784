#include <dlfcn.h>
#include <signal.h>

#include <functional>
#include <memory>
#include <numeric>
#include <string>
#include <utility>
#include <vector>

#include "absl/status/statusor.h"
#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "absl/time/clock.h"
#include "absl/time/time.h"
#include "base/environment.h"
#include "base/logging.h"
#include "base/status_macros.h"
#include "collective/communicator.h"
#include "collective/mpi/mpi_communicator.h"
#include "collective/shm/allreduce_table.h"
#include "collective/shm/shm_communicator.h"
#include "negotiation/channel/control_channel.h"
#include "negotiation/channel/shm/shm_channel.h"
#include "negotiation/channel/ucx/ucx_channel.h"
#include "negotiation/protocol/tree.h"
#include "negotiation/world/backend.h"
#include "negotiation/world/current_world.h"
#include "negotiation/world/start_agreement.h"

namespace hvdlite::internal {
namespace {

using collective::AllreduceTable;
using collective::Communicator;
using collective::Topology;
using negotiation::ControlChannel;
using Channel = absl::StatusOr<std::unique_ptr<ControlChannel>>;
using Layout = std::shared_ptr<const negotiation::WorldLayout>;

// Makes UCX links between neighbours in the tree that are on different nodes;
// null on ranks without such neighbours.
Channel CreateUcx(const Config& config, const Topology& topology,
                  const negotiation::WorldLayout& layout, Communicator& flat) {
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

// Makes the channel between the leaders of nodes; null on other ranks.
Channel CreateBetweenNodes(const Config& config, const Topology& topology,
                           const negotiation::WorldLayout& layout,
                           Communicator& flat,
                           std::vector<std::string>& warnings) {
  if (config.control_channel != "mpi") {
    Channel ucx = CreateUcx(config, topology, layout, flat);
    if (ucx.ok() || config.control_channel == "ucx") return ucx;
    warnings.push_back(absl::StrCat(
        "UCX is not available: ", ucx.status().message(),
        "; control messages between nodes go through MPI, and hvdlite polls "
        "MPI for them. HVDLITE_CONTROL_CHANNEL=mpi selects this without a "
        "warning"));
  }
  return negotiation::CreateMpiChannel(layout.leaders());
}

// Makes the channel of this node; null on a rank that is alone. All ranks of
// all nodes get theirs, or all get the same error.
Channel CreateForNode(const Topology& topology,
                      const negotiation::WorldLayout& layout,
                      Communicator& flat) {
  const absl::Span<const int> members = layout.RanksOnHostOf(topology.rank);
  negotiation::ShmChannelOptions options;
  for (const int rank : members) {
    options.rank_names.push_back(
        collective::DescribeRank(rank, topology.host_of_rank));
  }
  const auto create = [&]() -> Channel {
    if (members.size() == 1) return nullptr;
    // Groups that are made at the same time have different tags.
    HVDLITE_ASSIGN_OR_RETURN(const std::unique_ptr<Communicator> node,
                             flat.CreateSubgroup(members, topology.cross_rank));
    return negotiation::CreateShmChannel(*node, options);
  };
  Channel channel = create();
  HVDLITE_RETURN_IF_ERROR(collective::AgreeOn(flat, channel.status()));
  return channel;
}

// Turns `communicator`, a flat one over all ranks, into what `config` requests:
// it adds in rank order, and shares memory inside the nodes. Collective; all
// ranks agree about `config`. Appends to `warnings`, the same on every rank,
// what is not available; later failures are logged then. Errors, the same on
// every rank: InvalidArgument for a table of algorithms that cannot be read;
// otherwise those of the transport.
absl::Status ChooseDataPlane(const Config& config, const Topology& topology,
                             std::unique_ptr<Communicator>& communicator,
                             std::vector<std::string>& warnings) {
  HVDLITE_ASSIGN_OR_RETURN(
      AllreduceTable table,
      ReadAllreduceTable(*communicator, config.allreduce_table));
  if (config.deterministic) {
    communicator =
        collective::CreateRankOrderCommunicator(std::move(communicator));
    table = table.WithOneOrder();
  }
  if (!config.shared_memory) return absl::OkStatus();
  HVDLITE_ASSIGN_OR_RETURN(const base::Severity severity,
                           base::ParseSeverity(config.log_level));
  const base::Logger logger(severity, topology.rank);
  auto shared = collective::CreateShmCommunicator(
      communicator, topology.cross_rank_of_rank, table,
      {.warn = [logger](absl::string_view text) { logger.Warning(text); }});
  if (shared.ok()) {
    communicator = *std::move(shared);
  } else if (!absl::IsFailedPrecondition(shared.status())) {
    warnings.push_back(absl::StrCat(
        "ranks of a node cannot share memory, so that MPI reduces everything: ",
        shared.status().message()));
  }
  return absl::OkStatus();
}

// The parts of a backend, except the session.
struct Parts {
  Topology topology;
  std::unique_ptr<Communicator> communicator;
  std::unique_ptr<ControlChannel> channel;
  std::vector<std::string> warnings;
};

class MpiBackend final : public Backend {
 public:
  MpiBackend(std::unique_ptr<collective::MpiSession> session, Parts parts)
      : session_(std::move(session)),
        parts_(std::move(parts)),
        only_once_(!session_->application_owns_mpi()),
        outlives_ranks_(session_->outlives_ranks()) {}

  const Topology& topology() const override { return parts_.topology; }
  Communicator& communicator() override { return *parts_.communicator; }
  ControlChannel& channel() override { return *parts_.channel; }
  const std::vector<std::string>& warnings() const override {
    return parts_.warnings;
  }

  absl::Status Close() override {
    if (session_->application_owns_mpi()) LeaveNothingQueued();
    parts_.channel.reset();
    parts_.communicator.reset();
    return session_->Finalize();
  }

  void Abandon() override {
    parts_.channel.release();
    parts_.communicator.release();
    session_.reset();
  }

  bool only_once() const override { return only_once_; }
  bool can_be_replaced() const override { return outlives_ranks_; }

 private:
  // The program may not call MPI again for a long time, while other ranks wait
  // for the last data that this rank has sent.
  void LeaveNothingQueued() {
    for (int pause_ms = 1; pause_ms <= 8; pause_ms *= 2) {
      parts_.communicator->MakeProgress();
      absl::SleepFor(absl::Milliseconds(pause_ms));
    }
  }

  std::unique_ptr<collective::MpiSession> session_;
  Parts parts_;
  const bool only_once_;
  const bool outlives_ranks_;
};

// UCX (loaded by any library) and Open MPI handle signals such as SIGSEGV and
// SIGABRT, and allocate memory in the handler. After a crash inside malloc()
// the process would hang with its other threads alive. From now on such a
// signal ends the process, unless the user has configured these handlers.
void TakeCrashSignals(const base::Environment& environment) {
  const bool from_ucx = !environment.get("UCX_ERROR_SIGNALS").has_value() &&
                        !environment.get("UCX_HANDLE_ERRORS").has_value();
  const bool from_open_mpi =
      !environment.get("OMPI_MCA_opal_signal").has_value();
  for (const int crash : {SIGSEGV, SIGBUS, SIGILL, SIGFPE, SIGABRT}) {
    struct sigaction action {};
    Dl_info handler{};
    if (sigaction(crash, nullptr, &action) != 0 ||
        dladdr(reinterpret_cast<void*>(action.sa_handler), &handler) == 0) {
      continue;
    }
    if ((from_ucx && absl::StrContains(handler.dli_fname, "libucs")) ||
        (from_open_mpi &&
         absl::StrContains(handler.dli_fname, "libopen-pal"))) {
      signal(crash, SIG_DFL);
    }
  }
}

// How often a rank asks MPI for dead ranks, in case nothing else reports them.
constexpr absl::Duration kLookPeriod = absl::Milliseconds(50);

// Unavailable once ranks have died, naming them, or once others continue
// without this one. `session` must outlive the result.
std::function<absl::Status()> LookForDeadRanks(
    const collective::MpiSession& session, const Topology& topology) {
  return [&session, hosts = topology.host_of_rank,
          revoked = false]() mutable -> absl::Status {
    const std::vector<int> dead = session.DeadRanks();
    if (dead.empty()) {
      // A death may be reported after the others' leaving.
      if (revoked) {
        return absl::UnavailableError("other ranks have abandoned the world");
      }
      revoked = session.is_revoked();
      return absl::OkStatus();
    }
    return absl::UnavailableError(absl::StrCat(
        absl::StrJoin(dead, ", ",
                      [&](std::string* out, int rank) {
                        absl::StrAppend(out,
                                        collective::DescribeRank(rank, hosts));
                      }),
        dead.size() == 1 ? " has died" : " have died"));
  };
}

// Turns the communicator over all ranks into what `config` requests. Errors are
// the same on all ranks, also if their configurations differ.
absl::Status Assemble(const Config& config,
                      const collective::MpiSession& session, StartWatch& watch,
                      Parts& parts) {
  watch.Enter("comparing the ranks' configurations");
  HVDLITE_RETURN_IF_ERROR(AgreeOnConfig(*parts.communicator, config));
  HVDLITE_ASSIGN_OR_RETURN(
      parts.topology,
      collective::WithVirtualNodes(session.topology(), config.virtual_nodes));
  watch.Enter("connecting the control channel");
  HVDLITE_ASSIGN_OR_RETURN(
      parts.channel, ChooseControlChannel(config, parts.topology,
                                          *parts.communicator, parts.warnings));
  if (session.outlives_ranks()) {
    HVDLITE_ASSIGN_OR_RETURN(
        parts.channel,
        negotiation::CreateWatchedChannel(
            std::move(parts.channel), LookForDeadRanks(session, parts.topology),
            kLookPeriod));
  }
  watch.Enter("sharing memory inside the nodes");
  return ChooseDataPlane(config, parts.topology, parts.communicator,
                         parts.warnings);
}

}  // namespace

Channel ChooseControlChannel(const Config& config, const Topology& topology,
                             Communicator& flat,
                             std::vector<std::string>& warnings) {
  if (topology.size == 1) {
    return negotiation::CreateSingleRankChannel();
  }
  Layout layout = std::make_shared<negotiation::WorldLayout>(
      topology.cross_rank_of_rank, topology.host_of_rank);
  Channel node = CreateForNode(topology, *layout, flat);
  if (!node.ok()) {
    warnings.push_back(
        absl::StrCat("ranks of a node cannot share memory, so control messages "
                     "are sent as if each rank were a node of its own: ",
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

absl::StatusOr<std::unique_ptr<Backend>> CreateMpiBackend(
    const Config& config, StartWatch& watch,
    const collective::MpiRanks& ranks) {
  const auto on_stage = [&](const std::string& stage,
                            const std::string& awaited) {
    if (awaited.empty()) {
      watch.Enter(stage);
    } else {
      watch.Enter(stage, awaited);
    }
  };
  HVDLITE_ASSIGN_OR_RETURN(
      std::unique_ptr<collective::MpiSession> session,
      collective::MpiSession::Start(LeaveAtFinalize, on_stage, ranks));
  TakeCrashSignals(base::ProcessEnvironment());
  Parts parts;
  watch.Enter("making the world's communicator");
  HVDLITE_ASSIGN_OR_RETURN(parts.communicator,
                           collective::CreateMpiCommunicator());
  const absl::Status status = Assemble(config, *session, watch, parts);
  if (status.ok()) {
    return std::make_unique<MpiBackend>(std::move(session), std::move(parts));
  }
  if (absl::IsInvalidArgument(status)) {
    parts.channel.reset();
    parts.communicator.reset();
    session->Finalize().IgnoreError();  // all ranks have reached this line
  } else {
    parts.channel.release();
    parts.communicator.release();  // peers may still write to its memory
  }
  return status;
}

}  // namespace hvdlite::internal
