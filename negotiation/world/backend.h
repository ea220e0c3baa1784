// Backend: what a world is made of.
#pragma once

#include <memory>
#include <string>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "collective/communicator.h"
#include "collective/topology.h"
#include "negotiation/channel/control_channel.h"
#include "torch_plugin/include/hvdlite/config.h"

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

  // True if a backend of this kind cannot be created again after Close().
  virtual bool only_once() const = 0;
};

// This process alone.
absl::StatusOr<std::unique_ptr<Backend>> CreateSingleBackend();

// The processes of MPI_COMM_WORLD, in the nodes that `config` asks for.
// Collective. Errors as MpiSession::Start; InvalidArgument, alike on all ranks,
// where their configurations differ or such nodes cannot be.
absl::StatusOr<std::unique_ptr<Backend>> CreateMpiBackend(const Config& config);

}  // namespace hvdlite::internal
