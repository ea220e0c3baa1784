// Backend owns the transports of a world. ChooseControlChannel selects the
// transport of control messages.
#pragma once

#include <memory>
#include <string>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "collective/communicator.h"
#include "collective/mpi/mpi_world.h"
#include "collective/topology.h"
#include "hvdlite/config.h"
#include "negotiation/channel/control_channel.h"
#include "negotiation/explain/start_watch.h"

namespace hvdlite::internal {

// Owns the communicator and the control channel of this process, and the
// initialisation of MPI behind them. One thread at a time may call.
class Backend {
 public:
  virtual ~Backend() = default;

  virtual const collective::Topology& topology() const = 0;
  virtual collective::Communicator& communicator() = 0;
  virtual negotiation::ControlChannel& channel() = 0;

  // What was requested and is not available; the same text on every rank.
  virtual const std::vector<std::string>& warnings() const = 0;

  // Destroys the communicator and the channel, and finalizes what Create
  // initialised. Collective; no other function may be called afterwards.
  virtual absl::Status Close() = 0;

  // Replaces Close() if the world is broken: ends the use of MPI. Never frees
  // the communicator and the channel, since peers may still write to their
  // memory. Not collective; no other function may be called afterwards.
  virtual void Abandon() = 0;

  // True if a backend of this kind cannot be created again after Close().
  virtual bool only_once() const = 0;
  // True if the remaining ranks can create one after Abandon().
  virtual bool can_be_replaced() const = 0;
};

// Makes a backend of parts that end with their owner: nothing is initialised or
// finalized. A world of one rank can be replaced.
std::unique_ptr<Backend> CreateLocalBackend(
    collective::Topology topology,
    std::unique_ptr<collective::Communicator> communicator,
    std::unique_ptr<negotiation::ControlChannel> channel);

// Makes a backend of the MPI processes in `ranks`, on the nodes that `config`
// requests. Collective over them; reports to `watch` what it waits for. Errors:
// as for MpiSession::Start; InvalidArgument, the same on all ranks, if their
// configurations differ or such nodes are impossible.
absl::StatusOr<std::unique_ptr<Backend>> CreateMpiBackend(
    const Config& config, StartWatch& watch, const collective::MpiRanks& ranks);

// Makes the control channel of a world of MPI processes. Collective over
// `flat`, which is not needed afterwards; all ranks agree about `config`. The
// channel carries messages between neighbours in the tree of its layout(). It
// uses shared memory inside the nodes. Between their leaders it uses what
// `config` requests (auto: UCX, or MPI if UCX is not available). If the ranks
// of a node cannot share memory, every rank is a node of its own. Appends to
// `warnings`, the same on every rank, what is not available. Errors:
// Unavailable, on every rank, if UCX is requested and not available; otherwise
// those of the transport.
absl::StatusOr<std::unique_ptr<negotiation::ControlChannel>>
ChooseControlChannel(const Config& config, const collective::Topology& topology,
                     collective::Communicator& flat,
                     std::vector<std::string>& warnings);

}  // namespace hvdlite::internal
