// Backend: what a world is made of; what carries its control messages.
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

// Owns the communicator and the control channel of this process, and the use of
// MPI behind them. One calling thread at a time.
class Backend {
 public:
  virtual ~Backend() = default;

  virtual const collective::Topology& topology() const = 0;
  virtual collective::Communicator& communicator() = 0;
  virtual negotiation::ControlChannel& channel() = 0;

  // What was asked for and could not be had; the same on every rank.
  virtual const std::vector<std::string>& warnings() const = 0;

  // Destroys communicator and channel, and finalizes what Create initialised.
  // Collective; nothing else may be called afterwards.
  virtual absl::Status Close() = 0;

  // Instead of Close(), where the world is broken: ends the use of MPI. Keeps
  // communicator and channel for ever, since peers may still write to their
  // memory. Not collective; nothing else may be called afterwards.
  virtual void Abandon() = 0;

  // True if a backend of this kind cannot be created again after Close().
  virtual bool only_once() const = 0;
  // True if one can be created after Abandon(), of the ranks that are left.
  virtual bool can_be_replaced() const = 0;
};

// Of parts that end with their owner: nothing is initialised or finalized. A
// world of one rank can be replaced.
std::unique_ptr<Backend> CreateLocalBackend(
    collective::Topology topology,
    std::unique_ptr<collective::Communicator> communicator,
    std::unique_ptr<negotiation::ControlChannel> channel);

// The processes of MPI that `ranks` says, in the nodes that `config` asks for.
// Collective over them; tells
// `watch` what it waits for. Errors as MpiSession::Start; InvalidArgument,
// alike on all ranks, where their configurations differ or such nodes cannot
// be.
absl::StatusOr<std::unique_ptr<Backend>> CreateMpiBackend(
    const Config& config, StartWatch& watch, const collective::MpiRanks& ranks);

// What carries the control messages of a world of MPI processes. Collective
// over `flat`, on which all ranks agree about `config`; it is not needed
// afterwards. Carries messages between neighbours in the tree of the channel's
// layout(): shared memory inside the nodes, and between their leaders what
// `config` asks for (auto: UCX, or MPI where UCX cannot be had). Where the
// ranks of a node cannot share memory, every rank is a node of its own. Appends
// to `warnings`, the same on every rank, what could not be had. Errors:
// Unavailable, on every rank, where UCX is asked for and cannot be had;
// otherwise the transport's.
absl::StatusOr<std::unique_ptr<negotiation::ControlChannel>>
ChooseControlChannel(const Config& config, const collective::Topology& topology,
                     collective::Communicator& flat,
                     std::vector<std::string>& warnings);

}  // namespace hvdlite::internal
