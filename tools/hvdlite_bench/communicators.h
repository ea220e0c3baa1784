// The data planes of hvdlite that the sweep compares with MPI.
#pragma once

#include <functional>
#include <memory>
#include <string>
#include <vector>

#include "absl/status/statusor.h"
#include "collective/communicator.h"
#include "collective/shm/allreduce_table.h"

namespace hvdlite::tools {

struct NamedCommunicator {
  std::string name;  // of the contender, "hvdlite_" before it
  // Collective, over all ranks of MPI_COMM_WORLD. An error skips it; it is the
  // same on all ranks.
  std::function<absl::StatusOr<std::unique_ptr<collective::Communicator>>()>
      create;
};

// One line for each; those that choose among algorithms do so by `table`.
std::vector<NamedCommunicator> Communicators(
    const collective::AllreduceTable& table);

}  // namespace hvdlite::tools
