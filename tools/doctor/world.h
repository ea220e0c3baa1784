// InspectedRanks: the ranks that the doctor checks.
#pragma once

#include <memory>
#include <optional>

#include "absl/status/statusor.h"
#include "collective/communicator.h"
#include "collective/topology.h"
#include "tools/doctor/check.h"

namespace hvdlite::doctor {

struct InspectedRanks {
  // Collective. Finalizes MPI if it was initialized.
  virtual ~InspectedRanks() = default;

  std::unique_ptr<collective::Communicator> communicator;
  collective::Topology topology;
  std::optional<MpiFacts> mpi;
  // Whether this process prints. Exactly one process does.
  bool speaks = true;
};

// Only this process.
std::unique_ptr<InspectedRanks> StartAlone();

// All ranks of the launcher, or this process as the only rank of MPI. If
// hvdlite cannot use this MPI: only this process, and mpi->error has the
// reason. In a build without MPI: as StartAlone().
absl::StatusOr<std::unique_ptr<InspectedRanks>> StartWithMpi();

}  // namespace hvdlite::doctor
