// Replaces the MPI backend if hvdlite is built without MPI.
#include "absl/status/status.h"
#include "negotiation/world/backend.h"

namespace hvdlite::internal {

absl::StatusOr<std::unique_ptr<Backend>> CreateMpiBackend(
    const Config& /*config*/, StartWatch& /*watch*/,
    const collective::MpiRanks& /*ranks*/) {
  return absl::UnavailableError(
      "this hvdlite is built without MPI; HVDLITE_BACKEND=single does without "
      "it");
}

}  // namespace hvdlite::internal
