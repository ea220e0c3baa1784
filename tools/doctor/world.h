// InspectedRanks: the ranks that are looked at.
#pragma once

#include <memory>
#include <optional>

#include "absl/status/statusor.h"
#include "collective/communicator.h"
#include "collective/topology.h"
#include "tools/doctor/check.h"

namespace hvdlite::doctor {

struct InspectedRanks {
  // Finalizes MPI if it was initialised; collective.
  virtual ~InspectedRanks() = default;

  std::unique_ptr<collective::Communicator> communicator;
  collective::Topology topology;
  std::optional<MpiFacts> mpi;
  // Whether this process prints; one does.
  bool speaks = true;
};

// This process alone.
std::unique_ptr<InspectedRanks> StartAlone();

// All ranks of the launcher, or this process as MPI's only one. Alone, with the
// reason in mpi->error, where this MPI will not do for hvdlite; where there is
// no MPI in this build, as StartAlone().
absl::StatusOr<std::unique_ptr<InspectedRanks>> StartWithMpi();

}  // namespace hvdlite::doctor
